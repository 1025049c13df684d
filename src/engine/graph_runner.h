// Runs a graph once on values that are given by name, for verify: no session, no tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "file/checkpoint.h"
#include "graph/graph.h"
#include "plan/plan.h"

namespace hone {

// The numbers of one value, row-major without gaps.
struct TensorData {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

// By the name that a graph prints the value with: "%12".
using NamedTensors = std::map<std::string, TensorData, std::less<>>;

// Product of the shape.
std::int64_t element_count(const std::vector<std::int64_t>& shape);

// The extents of a type under these bindings.
Result<std::vector<std::int64_t>> extents_of(const Type& type, const Bindings& bindings);

// Any element type but the 8-bit floats; integers beyond 2^53 are rounded.
Result<std::vector<double>> to_doubles(const TensorData& tensor);

// The same numbers as another type, rounded to nearest; between float types, or q8a.
Result<TensorData> converted(const TensorData& tensor, DType dtype);

// Plans `graph` for the sizes `options.bound`, loads its weights from `checkpoint`, and runs it once on
// `inputs`, whose names are those of the graph's inputs. States begin as zeros. The outputs, by their names.
Result<NamedTensors> run_graph(const Graph& graph, const Checkpoint& checkpoint, const PlanOptions& options,
                               const NamedTensors& inputs);

}  // namespace hone
