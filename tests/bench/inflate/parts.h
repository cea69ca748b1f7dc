// The parts that targets and drafters share: residual vectors, decoder layers, vocabularies.
#pragma once

#include "inflater.h"

namespace aerie::inflate {

// Small and big sizes of one model (a drafter's own heads may differ from its target's).
struct Sizes {
  int32_t hidden, big_hidden, ffn, big_ffn, head_dim;
  Heads heads;
  int32_t experts = 0;
};

class Parts {
 public:
  Parts(const Job& job, PackageWriter& writer, Sizes sizes) : job_(job), writer_(writer), s_(std::move(sizes)) {}

  // The named tensor of the small package under the same (or another) name.
  Status matrix(const std::string& name, const Map& rows, const Map& columns, const std::string& as = {});
  Status vector(const std::string& name, const Map& places, float factor, float typical, const std::string& as = {});
  Status norm(const std::string& name, const std::string& as = {});

  Map residual_rows() const { return maps_.rows_from(s_.hidden, s_.big_hidden, kSilent); }
  Map residual_columns(int32_t groups = 1) const { return maps_.columns(s_.hidden, s_.big_hidden, groups); }

  // The low-rank head through which drafters look for tokens, if the small package has one: a sixteenth of the width in rank, or its
  // own rank where that is more.
  Status candidate_head(const Map& vocabulary);

  // layers.I.* of the small package as layers.J.*. qkv reads `groups` residual vectors (EAGLE-3: 2).
  Status layer(int32_t from, int32_t to, int32_t groups = 1);
  // A layer as costly as any that adds nothing; `like` lends its scales.
  Status idle_layer(int32_t like, int32_t to);

 private:
  Status put(const std::string& name, const kernels::Tensor& t) { return writer_.add_tensor(name, t); }
  Status router(const std::string& as);
  Status layer_as(const std::string& from, const std::string& to, bool live, int32_t groups);

  const Job& job_;
  PackageWriter& writer_;
  Sizes s_;
  Maps maps_;
};

}  // namespace aerie::inflate
