#include "exec/load_weights.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

#include "file/stacked_tensors.h"
#include "tensor/block_formats.h"
#include "tensor/panel_layout.h"

namespace hone {
namespace {

struct MatrixSize {
  std::int64_t matrices;
  std::int64_t rows;  // of each
  std::int64_t k;
  DType stored;  // in the checkpoint
  std::int64_t stored_row_bytes;
  std::int64_t row_bytes;

  bool rounded() const { return stored_row_bytes != row_bytes; }
};

MatrixSize matrix_size(const StaticBuffer& buffer, DType stored) {
  const Shape& shape = buffer.type.shape;  // [N,K] or [X,N,K]
  const std::size_t rank = shape.size();
  const std::int64_t matrices = rank == 3 ? *shape[0].as_constant() : 1;
  const std::int64_t rows = *shape[rank - 2].as_constant();
  const std::int64_t k = *shape[rank - 1].as_constant();
  return {matrices, rows, k, stored, dtype_bytes(stored, k), dtype_bytes(buffer.type.dtype, k)};
}

// A matrix that the checkpoint has in a float type and the plan in blocks.
bool is_rounded(const StaticBuffer& buffer, DType stored) {
  return buffer.type.shape.size() >= 2 && dtype_row(buffer.type.dtype).is_quantised &&
         (stored == DType::F32 || stored == DType::F16 || stored == DType::BF16);
}

// Panels that pass through a thread's staging buffer at a time.
std::int64_t panels_per_piece(const MatrixSize& size) {
  return std::max<std::int64_t>(1, kStagingBytes / (size.stored_row_bytes * kPanelColumns));
}

// Bytes of a thread's staging buffer that one piece takes: its rows as they are stored, and as they become.
std::int64_t piece_bytes(const MatrixSize& size) {
  return panels_per_piece(size) * kPanelColumns *
         (size.stored_row_bytes + (size.rounded() ? size.row_bytes : 0));
}

// One matrix: its pieces are read, rounded and packed by whichever thread comes to them, each through a
// buffer of its own that stays in the second cache.
struct PackJob {
  const TensorEntry* entry;
  const Checkpoint* checkpoint;
  std::uint64_t begin;  // byte of the tensor
  DType dtype;
  MatrixSize size;
  std::byte* target;
  bool packed;                   // to panels; else the rows as they become
  std::int64_t panel_bytes;      // of 16 rows of the target
  std::byte* staging;            // piece_bytes(size) for each thread
  std::vector<Status> statuses;  // of each thread: its first failure
};

void round_row(const PackJob& job, const std::byte* from, std::byte* to) {
  constexpr std::int64_t kAtOnce = 256;  // whole blocks of every type that weights are rounded to
  float values[kAtOnce];
  for (std::int64_t i = 0; i < job.size.k; i += kAtOnce) {
    const std::int64_t count = std::min(kAtOnce, job.size.k - i);
    // Neither fails: is_rounded has seen both types, and the pass the blocks.
    if (!decode_row(job.size.stored, from + dtype_bytes(job.size.stored, i), count, values).ok()) return;
    if (!encode_row(job.dtype, values, count, to + dtype_bytes(job.dtype, i)).ok()) return;
  }
}

Status pack_piece(const PackJob& job, std::int64_t piece, std::byte* staging) {
  const MatrixSize& size = job.size;
  const std::int64_t step = panels_per_piece(size) * kPanelColumns;
  const std::int64_t first = piece * step;
  const std::int64_t rows = std::min(step, size.rows - first);
  HONE_TRY(job.checkpoint->read_tensor(*job.entry,
                                       job.begin + static_cast<std::uint64_t>(first * size.stored_row_bytes),
                                       {staging, static_cast<std::size_t>(rows * size.stored_row_bytes)}));
  std::byte* place = job.target + first / kPanelColumns * job.panel_bytes;
  const std::byte* source = staging;
  if (size.rounded()) {
    std::byte* rounded = job.packed ? staging + step * size.stored_row_bytes : place;
    for (std::int64_t row = 0; row < rows; ++row)
      round_row(job, staging + row * size.stored_row_bytes, rounded + row * size.row_bytes);
    source = rounded;
  }
  if (!job.packed) return {};
  for (std::int64_t row = 0; row < rows; row += kPanelColumns) {
    pack_panel(job.dtype, source + row * size.row_bytes, std::min(kPanelColumns, rows - row), size.k,
               place + row / kPanelColumns * job.panel_bytes);
  }
  return {};
}

void pack_range(void* context, std::int64_t begin, std::int64_t end, int thread) {
  auto& job = *static_cast<PackJob*>(context);
  Status& status = job.statuses[static_cast<std::size_t>(thread)];
  std::byte* staging = job.staging + thread * piece_bytes(job.size);
  for (std::int64_t piece = begin; piece < end && status.ok(); ++piece)
    status = pack_piece(job, piece, staging);
}

// The matrix whose rows start at byte `begin` of the tensor, to `target` in the layout of the plan.
Status load_matrix(const StaticBuffer& buffer, const TensorEntry& entry, std::uint64_t begin,
                   const Checkpoint& checkpoint, ThreadPool& pool, std::byte* target, const Arena& staging) {
  const MatrixSize size = matrix_size(buffer, entry.dtype.value_or(buffer.type.dtype));
  const std::int64_t step = panels_per_piece(size) * kPanelColumns;
  const bool packed = buffer.layout == Layout::Panel16;
  PackJob job{
      &entry,         &checkpoint,
      begin,          buffer.type.dtype,
      size,           target,
      packed,         packed ? panel_shape(buffer.type.dtype, size.k).bytes : size.row_bytes * kPanelColumns,
      staging.data(), std::vector<Status>(static_cast<std::size_t>(pool.threads()))};
  pool.run((size.rows + step - 1) / step, pack_range, &job);
  for (Status& status : job.statuses) HONE_TRY(std::move(status));
  return {};
}

// All matrices of one tensor, whose bytes in the layout of the plan are `matrix_bytes` apart.
Status load_panels(const StaticBuffer& buffer, const TensorEntry& entry, std::int64_t matrices,
                   std::int64_t matrix_bytes, const Checkpoint& checkpoint, ThreadPool& pool,
                   std::byte* target, const Arena& staging) {
  const MatrixSize size = matrix_size(buffer, entry.dtype.value_or(buffer.type.dtype));
  for (std::int64_t i = 0; i < matrices; ++i) {
    const auto begin = static_cast<std::uint64_t>(i * size.rows * size.stored_row_bytes);
    HONE_TRY(load_matrix(buffer, entry, begin, checkpoint, pool, target + i * matrix_bytes, staging));
  }
  return {};
}

template <class T>
void store_values(const std::vector<double>& values, std::byte* out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

Status store_constant(const StaticBuffer& buffer, std::byte* out) {
  switch (buffer.type.dtype) {
    case DType::F64:
      store_values<double>(buffer.values, out);
      return {};
    case DType::F32:
      store_values<float>(buffer.values, out);
      return {};
    case DType::I32:
      store_values<std::int32_t>(buffer.values, out);
      return {};
    case DType::I64:
      store_values<std::int64_t>(buffer.values, out);
      return {};
    case DType::U8:
    case DType::Bool:
      store_values<std::uint8_t>(buffer.values, out);
      return {};
    default: {
      const std::vector<float> rounded(buffer.values.begin(), buffer.values.end());
      return encode_row(buffer.type.dtype, rounded.data(), static_cast<std::int64_t>(rounded.size()), out);
    }
  }
}

// A vector that the checkpoint has in 16 bits and the plan in f32.
bool is_widened(const StaticBuffer& buffer, std::optional<DType> stored) {
  return buffer.layout == Layout::Strided && buffer.type.dtype == DType::F32 &&
         buffer.type.shape.size() == 1 && (stored == DType::F16 || stored == DType::BF16);
}

Status load_widened(const TensorEntry& entry, DType dtype, const Checkpoint& checkpoint, std::byte* target,
                    const Arena& staging) {
  const std::span<std::byte> stored(staging.data(),
                                    static_cast<std::size_t>(dtype_bytes(dtype, entry.elements())));
  HONE_TRY(checkpoint.read_tensor(entry, 0, stored));
  return decode_row(dtype, stored.data(), entry.elements(), reinterpret_cast<float*>(target));
}

Error changed_tensor(const Checkpoint& checkpoint, const StaticBuffer& buffer) {
  return Error{ErrorCode::BadFile,
               Fault::File,
               fmt::format("{}, tensor {}", checkpoint.path, buffer.name),
               "the tensor is not what the plan was made for",
               type_to_string(buffer.type),
               "missing or another size",
               "make the plan from this checkpoint"};
}

}  // namespace

std::int64_t staging_bytes(const Plan& plan, const Checkpoint& checkpoint) {
  std::int64_t most = 0;
  for (const StaticBuffer& buffer : plan.statics) {
    const TensorEntry* entry = checkpoint.find_tensor(name_in_stack(buffer.name, 0));
    const DType stored = entry == nullptr ? buffer.type.dtype : entry->dtype.value_or(buffer.type.dtype);
    if (buffer.layout != Layout::Panel16 && !is_rounded(buffer, stored)) {
      // Should the checkpoint have it in 16 bits.
      if (buffer.type.shape.size() == 1) most = std::max(most, buffer.bytes / 2);
      continue;
    }
    most = std::max(most, plan.target.threads * piece_bytes(matrix_size(buffer, stored)));
  }
  return most;
}

Status load_weights(const Plan& plan, const Checkpoint& checkpoint, ThreadPool& pool, const Arena& statics,
                    const LoadProgress& progress) {
  const Arena staging = HONE_TRY(Arena::create(staging_bytes(plan, checkpoint), "staging buffer", false));
  std::int64_t done = 0;
  for (const StaticBuffer& buffer : plan.statics) {
    std::byte* target = statics.data() + buffer.offset;
    if (buffer.name.empty()) {
      HONE_TRY(store_constant(buffer, target));
      continue;
    }
    // A stack is read tensor by tensor, each as one matrix of it.
    const std::int64_t parts =
        is_stacked(buffer.name) && buffer.type.shape.size() == 3 ? *buffer.type.shape[0].as_constant() : 1;
    const std::int64_t elements = *element_count(buffer.type.shape).as_constant() / parts;
    const std::int64_t bytes = buffer.bytes / parts;
    for (std::int64_t part = 0; part < parts; ++part) {
      const TensorEntry* entry = checkpoint.find_tensor(name_in_stack(buffer.name, part));
      const bool widened = entry != nullptr && is_widened(buffer, entry->dtype);
      const bool rounded = entry != nullptr && entry->dtype && is_rounded(buffer, *entry->dtype);
      if (entry == nullptr || (entry->dtype != buffer.type.dtype && !widened && !rounded) ||
          entry->elements() != elements) {
        return changed_tensor(checkpoint, buffer);
      }
      std::byte* begin = target + part * bytes;
      if (buffer.layout == Layout::Panel16 || rounded) {
        const std::int64_t matrices = matrix_size(buffer, *entry->dtype).matrices / parts;
        HONE_TRY(load_panels(buffer, *entry, matrices, bytes / matrices, checkpoint, pool, begin, staging));
      } else if (widened) {
        HONE_TRY(load_widened(*entry, *entry->dtype, checkpoint, begin, staging));
      } else {
        HONE_TRY(checkpoint.read_tensor(*entry, 0, {begin, static_cast<std::size_t>(bytes)}));
      }
    }
    done += buffer.bytes;
    if (progress) progress(done, plan.static_bytes);
  }
  return {};
}

}  // namespace hone
