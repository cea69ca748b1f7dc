// PassClock: what the parts of one plan take, by the device's own clock: draft passes whose end the host does not see.
#pragma once

#include <span>
#include <vector>

#include "core/model/plan.h"

namespace aerie {

class PassClock {
 public:
  // What is recorded from here on are so many parts, each ended by part(), and the rest, ended by end(). 0: no clock is read.
  void begin(Plan& plan, int32_t parts);
  void part(Plan& plan);
  void end(Plan& plan);

  // Once the plan has run, for which the host has waited `ms` in all: that is shared out as the device says.
  void stop(double ms);
  std::span<const double> parts() const { return ms_; }
  double all_parts() const;
  double rest() const { return rest_; }

 private:
  void note(Plan& plan);
  int64_t* at_ = nullptr;  // device
  size_t noted_ = 0;
  std::vector<int64_t> read_;
  std::vector<double> ms_;
  double rest_ = 0;
};

}  // namespace aerie
