#include "engine/graph_runner.h"

#include <cstring>
#include <fmt/format.h>

#include "exec/executor.h"
#include "tensor/block_formats.h"

namespace hone {
namespace {

template <class T>
std::vector<double> widened(const TensorData& tensor) {
  std::vector<T> values(tensor.bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(T));
  return std::vector<double>(values.begin(), values.end());
}

struct IntegerType {
  DType dtype;
  std::vector<double> (*widen)(const TensorData&);
};

// The types that decode_row does not read.
constexpr IntegerType kOtherTypes[] = {
    {DType::F64, widened<double>},        {DType::I8, widened<std::int8_t>},
    {DType::U8, widened<std::uint8_t>},   {DType::I16, widened<std::int16_t>},
    {DType::I32, widened<std::int32_t>},  {DType::U32, widened<std::uint32_t>},
    {DType::I64, widened<std::int64_t>},  {DType::U64, widened<std::uint64_t>},
    {DType::Bool, widened<std::uint8_t>},
};

}  // namespace

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

Result<std::vector<std::int64_t>> extents_of(const Type& type, const Bindings& bindings) {
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(HONE_TRY(dim.evaluate(bindings)));
  return shape;
}

Result<std::vector<double>> to_doubles(const TensorData& tensor) {
  for (const IntegerType& row : kOtherTypes) {
    if (row.dtype == tensor.dtype) return row.widen(tensor);
  }
  std::vector<float> values(static_cast<std::size_t>(element_count(tensor.shape)));
  HONE_TRY(decode_row(tensor.dtype, tensor.bytes.data(), std::ssize(values), values.data()));
  return std::vector<double>(values.begin(), values.end());
}

Result<TensorData> converted(const TensorData& tensor, DType dtype) {
  if (tensor.dtype == dtype) return tensor;
  const std::vector<double> wide = HONE_TRY(to_doubles(tensor));
  const std::vector<float> values(wide.begin(), wide.end());
  TensorData out{dtype, tensor.shape, {}};
  out.bytes.resize(static_cast<std::size_t>(dtype_bytes(dtype, std::ssize(values))));
  HONE_TRY(encode_row(dtype, values.data(), std::ssize(values), out.bytes.data()));
  return out;
}

Result<NamedTensors> run_graph(const Graph& graph, const Checkpoint& checkpoint, const PlanOptions& options,
                               const NamedTensors& inputs) {
  const Plan plan = HONE_TRY(make_plan(graph, options));
  const std::unique_ptr<Executor> executor = HONE_TRY(Executor::create(plan, checkpoint, {}));
  HONE_TRY(executor->bind(options.bound));
  for (const Port& port : plan.inputs) {
    const auto given = inputs.find(port.name);
    const std::span<std::byte> bytes = HONE_TRY(executor->input(port.name));
    if (given == inputs.end() || given->second.bytes.size() != bytes.size()) {
      return internal_error(port.name, "a graph was to run without the numbers of this input");
    }
    std::memcpy(bytes.data(), given->second.bytes.data(), bytes.size());
  }
  executor->run();
  NamedTensors out;
  for (const Port& port : plan.outputs) {
    const std::span<const std::byte> bytes = HONE_TRY(executor->output(port.name));
    out[port.name] = {port.type.dtype, HONE_TRY(extents_of(port.type, options.bound)),
                      std::vector<std::byte>(bytes.begin(), bytes.end())};
  }
  return out;
}

}  // namespace hone
