// What a drafter would have proposed at every position of texts that the target wrote. Speculation changes no token, so
// whatever a policy asks for at a position is a part of the tree recorded there, and what the target took of it is the
// text itself: a policy can be replayed without either.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace aerie::bench {

// A node of a recorded tree; node 0 is the root. The children of a node follow each other, best first.
struct WideNode {
  int32_t token = -1, first_child = -1, children = 0;
  float confidence = 0;
};

struct WideTree {
  std::vector<WideNode> nodes;
};

struct RecordedText {
  std::vector<int32_t> truth;       // token t + 1 follows the position that trees[t] was recorded at
  std::vector<WideTree> trees;      // fewer than tokens: the last ones only say how far trees reached
  int64_t prompt = 0;               // tokens before the first
};

enum class DrafterKind { levels, one_pass, host };

// Of one drafter at one temperature.
struct Recording {
  std::string name;
  DrafterKind kind = DrafterKind::levels;
  int32_t max_depth = 127;
  std::vector<RecordedText> texts;
};

struct RecordOptions {
  float temperature = 0;
  int32_t tokens = 192;  // positions of each text
  bool shared_noise = true;
};

Result<Recording> record(const std::shared_ptr<Model>& model, const std::shared_ptr<Drafter>& drafter,
                         const std::vector<std::vector<int32_t>>& prompts, const RecordOptions& options);

bool save_recording(const Recording& recording, const std::string& path);
bool load_recording(const std::string& path, Recording* recording);  // all but its name

}  // namespace aerie::bench
