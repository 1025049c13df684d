// What the tests of the engine share: reference values from safetensors files, and runs of one sequence in
// chunks, alone or beside others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.h"
#include "file/safetensors.h"

namespace hone::test {

using Ids = std::vector<std::int32_t>;

inline std::string describe(const Error& error) {
  return error.where + ": " + error.message + "; expected " + error.expected + ", not " + error.actual;
}

inline std::string data_path(const std::string& name) {
  return std::string(HONE_TEST_DATA) + "/" + name;
}

// The values of one tensor whose element type has the size of T.
template <class T>
std::vector<T> tensor_values(const Checkpoint& file, std::string_view name) {
  const TensorEntry* entry = file.find_tensor(name);
  if (entry == nullptr) {
    ADD_FAILURE() << file.path << " has no tensor " << name;
    return {};
  }
  std::vector<T> out(static_cast<std::size_t>(entry->elements()));
  if (out.size() * sizeof(T) != entry->bytes) {
    ADD_FAILURE() << name << " is " << entry->type_name;
    return {};
  }
  std::memcpy(out.data(), file.files[0]->data().data() + entry->offset, entry->bytes);
  return out;
}

inline Ids to_ids(std::span<const std::int64_t> values) {
  Ids out;
  for (const std::int64_t value : values) out.push_back(static_cast<std::int32_t>(value));
  return out;
}

inline std::unique_ptr<Session> open_session(const std::string& path, const EngineOptions& options) {
  Result<std::unique_ptr<Session>> session = Session::open(path, options);
  if (!session.ok()) {
    ADD_FAILURE() << describe(session.error());
    return nullptr;
  }
  return std::move(session).value();
}

// The logits [T,V] of all tokens of `ids`, `chunk` of them in a step. The sequence is row `slot` of a batch
// whose other rows are `others`, which advance by `chunk` too until they end. All of `ids` is one prompt.
inline std::vector<float> all_logits(Session& session, const Ids& ids, std::int64_t chunk,
                                     std::size_t slot = 0, const std::vector<Ids>& others = {}) {
  std::vector<Ids> batch = others;
  batch.insert(batch.begin() + static_cast<std::ptrdiff_t>(slot), ids);
  std::vector<float> out;
  std::vector<std::int64_t> lengths;
  for (const Ids& row : batch) lengths.push_back(static_cast<std::int64_t>(row.size()));
  const auto length = static_cast<std::int64_t>(ids.size());
  for (std::int64_t at = 0; at < length; at += chunk) {
    std::vector<Ids> parts;
    std::vector<std::int64_t> past;
    for (const Ids& row : batch) {
      const auto size = static_cast<std::int64_t>(row.size());
      const std::int64_t begin = std::min(at, size);
      parts.emplace_back(row.begin() + begin, row.begin() + std::min(at + chunk, size));
      past.push_back(begin);
    }
    std::vector<Session::Row> rows;
    for (std::size_t i = 0; i < parts[slot].size(); ++i) {
      rows.push_back({static_cast<std::int64_t>(slot), static_cast<std::int64_t>(i)});
    }
    const Result<std::span<const float>> logits = session.step(parts, past, rows, lengths);
    if (!logits.ok()) {
      ADD_FAILURE() << describe(logits.error());
      return {};
    }
    out.insert(out.end(), logits->begin(), logits->end());
  }
  return out;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  double largest = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;  // NaN too
  }
  return largest;
}

inline double frobenius(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// |a - b| / |b|, Frobenius norms.
inline double relative_distance(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  std::vector<float> difference(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return frobenius(difference) / frobenius(b);
}

inline double largest_magnitude(std::span<const float> values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

// Largest error of logits of magnitude `a` computed in f32. Each dot product of length `k` sums like a random
// walk of sqrt(k) roundings, the errors of the two residual branches of each layer are independent, and a
// factor of 8 covers norms, softmax and the worst of some thousand logits.
inline double f32_tolerance(double k, double layers, double a) {
  return 8 * 0x1p-24 * std::sqrt(k) * std::sqrt(2 * layers) * a;
}

inline double f32_tolerance(const ModelConfig& config, double a) {
  const std::int64_t k = std::max({config.dim, config.ffn, config.heads * config.head_dim});
  return f32_tolerance(static_cast<double>(k), static_cast<double>(config.layers), a);
}

inline std::span<const float> row_of(std::span<const float> matrix, std::size_t row, std::size_t columns) {
  return matrix.subspan(row * columns, columns);
}

inline std::int64_t arg_max(std::span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

}  // namespace hone::test
