// What all checkpoints share, whatever their file format: names without a prefix, and taking tensors by count.
#include "core/import/source.h"

namespace aerie {

namespace {

class WithoutPrefix final : public TensorSource {
 public:
  WithoutPrefix(std::unique_ptr<TensorSource> source, const std::string& prefix, const std::string& other) : source_(std::move(source)) {
    for (const auto& [theirs, tensor] : source_->tensors()) {
      std::string ours = theirs.starts_with(prefix) ? other + theirs.substr(prefix.size()) : theirs;
      if (source_->tensors().count(ours) && ours != theirs) ours = theirs;  // both are there: neither is hidden
      tensors_[ours] = tensor;
      names_[std::move(ours)] = theirs;
    }
  }
  const std::string& name() const override { return source_->name(); }
  const std::map<std::string, SourceTensor>& tensors() const override { return tensors_; }
  Result<std::vector<float>> read(const std::string& t, int64_t first, int64_t n) const override { return source_->read(names_.at(t), first, n); }
  Result<std::vector<int64_t>> read_integers(const std::string& t) const override { return source_->read_integers(names_.at(t)); }
  Result<std::span<const uint8_t>> bytes(const std::string& t) const override { return source_->bytes(names_.at(t)); }

 private:
  std::unique_ptr<TensorSource> source_;
  std::map<std::string, SourceTensor> tensors_;
  std::map<std::string, std::string> names_;  // ours -> theirs
};

class Changed final : public TensorSource {
 public:
  Changed(const TensorSource& source, ChangeTensor change) : source_(source), change_(std::move(change)) {}
  const std::string& name() const override { return source_.name(); }
  const std::map<std::string, SourceTensor>& tensors() const override { return source_.tensors(); }
  Result<std::vector<float>> read(const std::string& t, int64_t first, int64_t n) const override {
    auto values = source_.read(t, first, n);
    if (values.ok() && n == source_.tensors().at(t).elements()) change_(t, &*values);
    return values;
  }
  Result<std::vector<int64_t>> read_integers(const std::string& t) const override { return source_.read_integers(t); }
  Result<std::span<const uint8_t>> bytes(const std::string& t) const override { return source_.bytes(t); }

 private:
  const TensorSource& source_;
  const ChangeTensor change_;
};

std::string to_string(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t d : shape) text += (text.empty() ? "(" : ", ") + std::to_string(d);
  return text.empty() ? "()" : text + ")";
}

}  // namespace

Result<std::span<const uint8_t>> TensorSource::bytes(const std::string& tensor) const {
  return error(Code::unsupported, name() + ": tensor " + tensor + ": bytes (U8) are needed");
}

kernels::DType finer(kernels::DType a, kernels::DType b) {
  constexpr auto bytes = [](kernels::DType t) {
    return kernels::data_bytes(t, kernels::Layout::panel16, kernels::kPanel, kernels::kBlock) +
           kernels::scale_bytes(t, kernels::kPanel, kernels::kBlock);
  };
  return bytes(a) < bytes(b) ? b : a;
}

void append(SourceMatrix* all, const SourceMatrix& rows) {
  all->values.insert(all->values.end(), rows.values.begin(), rows.values.end());
  all->rows += rows.rows;
  all->stored = finer(all->stored, rows.stored);
}

std::unique_ptr<TensorSource> without_prefix(std::unique_ptr<TensorSource> source, const std::string& prefix, const std::string& other) {
  return std::make_unique<WithoutPrefix>(std::move(source), prefix, other);
}

std::unique_ptr<TensorSource> changed(const TensorSource& source, ChangeTensor change) {
  return std::make_unique<Changed>(source, std::move(change));
}

Status TensorTaker::take_shape(const std::string& name, const std::vector<int64_t>& shape) {
  const auto it = source_.tensors().find(name);
  if (it == source_.tensors().end()) return error(Code::bad_format, source_.name() + ": tensor " + name + ": missing");
  if (it->second.shape != shape)
    return error(Code::bad_format, source_.name() + ": tensor " + name + ": shape " + to_string(it->second.shape) +
                                       ", the config needs " + to_string(shape));
  left_.erase(name);
  return {};
}

Result<std::vector<float>> TensorTaker::take(const std::string& name, const std::vector<int64_t>& shape) {
  AERIE_TRY(take_shape(name, shape));
  return source_.read(name);
}

Result<std::vector<float>> TensorTaker::take_row(const std::string& name, int64_t n) {
  const auto it = source_.tensors().find(name);
  const bool matrix = it != source_.tensors().end() && it->second.shape.size() == 2;
  return take(name, matrix ? std::vector<int64_t>{1, n} : std::vector<int64_t>{n});
}

Result<SourceMatrix> TensorTaker::take_matrix(const std::string& name, int64_t rows, int64_t cols) {
  AERIE_ASSIGN(auto values, take(name, {rows, cols}));
  return SourceMatrix{rows, cols, std::move(values), source_.tensors().at(name).stored};
}

Result<std::vector<float>> TensorTaker::part(const std::string& name, int64_t i) const {
  const SourceTensor& t = source_.tensors().at(name);
  const int64_t n = t.elements() / t.shape[0];
  return source_.read(name, i * n, n);
}

Result<std::vector<int64_t>> TensorTaker::take_integers(const std::string& name, const std::vector<int64_t>& shape) {
  AERIE_TRY(take_shape(name, shape));
  return source_.read_integers(name);
}

Result<std::span<const uint8_t>> TensorTaker::take_bytes(const std::string& name, const std::vector<int64_t>& shape) {
  AERIE_TRY(take_shape(name, shape));
  return source_.bytes(name);
}

Status TensorTaker::nothing_left() const {
  if (left_.empty()) return {};
  return error(Code::bad_format, source_.name() + ": tensor " + *left_.begin() + ": unexpected" +
                                     (left_.size() > 1 ? " (and " + std::to_string(left_.size() - 1) + " more)" : ""));
}

}  // namespace aerie
