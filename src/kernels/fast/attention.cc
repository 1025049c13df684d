// attention(q f32 [B,K,G,T,E], k [B,C,K,E], v [B,C,K,V], positions i32 [B,T] or none) {scale, softcap,
// window}
// -> f32 or q8a [B,T,K,G,V]: softmax(scale * q k^T over the visible keys) v, with online softmax (Milakov and
// Gimelshein 2018). Visible are the keys c <= position, with a window the last `window` of them, and without
// positions all; with a softcap the scores are softcap * tanh(scale / softcap * q k^T).
//
// Order of one row, whatever else is computed: the keys are walked in tiles of 64 absolute positions, 0
// first; tiles with no visible key are skipped. Within a tile
//   s[c] = (chain of fma over e = 0 .. E-1, from zero) * scale             hidden keys: -inf
//          or tanh(chain * (scale / softcap)) * softcap
//   m'   = max(m, s)                                                       m starts at -inf
//   w    = exp(m - m')         p[c] = exp(s[c] - m')
//   l[i] = l[i] * w + ((p[i] + p[16+i]) + (p[32+i] + p[48+i]))             16 partial sums, folded as
//   sum(Vec16) o[e] = chain of fma over the visible keys in order, from o[e] * w
// (w = 1 where m' = m: nothing is multiplied), and at the end o / l. So a row's bits depend neither on the
// capacity C, nor on the other rows, nor on how a prompt is cut. A padding token (position < 0) gives zeros.
//
// A tile of work is one sequence, one kv head and a block of tokens with all G heads: about 64 rows, which
// share one f32 copy of each key tile (transposed) and value tile. Where there are at most kStreamedRows of
// them, as in decode, they are one block of rows: values are converted as they are multiplied, and the next
// tile is asked for on the way (cache_rows.h). In a flattened step q is [1,K,G,N,E], positions are [1,N], and
// a fifth input i32 [1,N] has the sequence of each token, not descending: a block is tokens of one sequence,
// and since where sequences end is data and the number of tiles is not, the last tiles may be empty.
#include "kernels/fast/axes.h"
#include "kernels/fast/block_load.h"
#include "kernels/fast/cache_rows.h"
#include "kernels/fast/list.h"
#include "kernels/fast/math16.h"
#include "kernels/fast/q8a_block.h"
#include "kernels/fast/row_block.h"
#include "kernels/fast/vector_kernels.h"
#include "kernels/signature_helpers.h"
#include "kernels/vector_signatures.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {
namespace {

constexpr std::int64_t kKeys = kBlockWidth;
constexpr std::int64_t kRowsPerTile = 64;
// Rows whose sums the registers hold beside what they are multiplied by: 8 x 2 of 32, 4 x 1 of two each
// of 16.
constexpr int kStreamedRows = kThisIsa == Isa::Avx512 ? 8 : 4;
// Values of one column of 32 are 32 rows of all kv heads: with 64 and heads of 128, two tiles of values and
// the keys meet in too few sets of the first cache (5 % slower).
constexpr std::int64_t kStreamedKeys = 32;
static_assert(kKeys == 64, "the order of the partial sums is written for four groups of 16 keys");

std::int64_t tokens_per_tile(std::int64_t heads) {
  return heads < kRowsPerTile ? kRowsPerTile / heads : 1;
}
std::int64_t round_up_16(std::int64_t n) {
  return blocks_of(n, 16) * 16;
}

// Where the parts of the scratch lie, in floats.
struct Plan {
  std::int64_t rows = 0;  // of a full tile
  std::int64_t head = 0;  // E
  std::int64_t head_padded = 0;
  std::int64_t value = 0;  // V
  std::int64_t value_padded = 0;
  std::int64_t queries = 0;  // [rows, E]
  std::int64_t outputs = 0;  // [rows, V padded]: o
  std::int64_t sums = 0;     // [rows, 16]: l
  std::int64_t largest = 0;  // [rows]: m
  std::int64_t visible = 0;  // [rows] as i32: end of the keys that the row sees
  std::int64_t first = 0;    // [rows] as i32: the first of them
  std::int64_t scores = 0;   // [kStreamedRows, kKeys]
  std::int64_t keys = 0;     // [E padded, kKeys]
  std::int64_t values = 0;   // [kKeys, V padded]
  std::int64_t total = 0;
};

Plan plan_of(const Call& call) {
  const TensorView& q = call.inputs[0];
  Plan plan;
  plan.rows = tokens_per_tile(q.shape[2]) * q.shape[2];
  plan.head = q.shape[4];
  plan.head_padded = round_up_16(plan.head);
  plan.value = call.inputs[2].shape[3];
  plan.value_padded = round_up_16(plan.value);
  plan.outputs = 0;
  plan.values = plan.outputs + plan.rows * plan.value_padded;
  plan.keys = plan.values + kKeys * plan.value_padded;
  plan.scores = plan.keys + plan.head_padded * kKeys;
  plan.sums = plan.scores + kStreamedRows * kKeys;
  plan.queries = plan.sums + plan.rows * 16;
  plan.largest = plan.queries + round_up_16(plan.rows * plan.head);
  plan.visible = plan.largest + round_up_16(plan.rows);
  plan.first = plan.visible + round_up_16(plan.rows);
  plan.total = plan.first + round_up_16(plan.rows);
  return plan;
}

// Blocks of tokens, of all sequences. N tokens in runs n_1 .. n_B (some may be 0), cut into blocks of at most
// p: sum ceil(n_b / p) <= sum (n_b + p - 1) / p, and no more than one block a token.
std::int64_t token_blocks(const Call& call) {
  const TensorView& q = call.inputs[0];
  const std::int64_t per_tile = tokens_per_tile(q.shape[2]);
  const std::int64_t tokens = q.shape[3];
  if (call.input_count < 5) return q.shape[0] * blocks_of(tokens, per_tile);
  return smaller(tokens, (tokens + call.inputs[1].shape[0] * (per_tile - 1)) / per_tile);
}

std::int64_t attention_tiles(const Call& call) {
  return call.inputs[0].shape[1] * token_blocks(call);
}

std::int64_t attention_scratch(const Call& call) {
  return plan_of(call).total * 4;
}

// The work of one tile.
struct Work {
  const Call* call = nullptr;
  Plan plan;
  float* scratch = nullptr;
  float scale = 1.0F;       // of the products; with a softcap, scale / softcap
  float softcap = 0.0F;     // 0: none
  std::int64_t window = 0;  // 0: none
  std::int64_t b = 0, kv_head = 0, first_token = 0, tokens = 0, heads = 0;
  std::int64_t sequence = 0;  // whose keys: b, but in a flattened step
  std::int64_t rows = 0;      // tokens * heads; row = token * heads + head
  std::int64_t visible = 0;   // end of the keys that any row sees
  std::int64_t first = 0;     // the first of them
};

std::int32_t& visible_of(const Work& work, std::int64_t row) {
  return reinterpret_cast<std::int32_t*>(work.scratch + work.plan.visible)[row];
}
std::int32_t& first_of(const Work& work, std::int64_t row) {
  return reinterpret_cast<std::int32_t*>(work.scratch + work.plan.first)[row];
}
float* query_of(const Work& work, std::int64_t row) {
  return work.scratch + work.plan.queries + row * work.plan.head;
}
float* output_of(const Work& work, std::int64_t row) {
  return work.scratch + work.plan.outputs + row * work.plan.value_padded;
}
float* sums_of(const Work& work, std::int64_t row) {
  return work.scratch + work.plan.sums + row * 16;
}
float& largest_of(const Work& work, std::int64_t row) {
  return work.scratch[work.plan.largest + row];
}

// The end of the keys that token `token` sees; 0 for padding.
std::int64_t visible_keys(const Work& work, std::int64_t token) {
  const TensorView& positions = work.call->inputs[3];
  const std::int32_t position = static_cast<const std::int32_t*>(
      positions.data)[work.b * positions.strides[0] + token * positions.strides[1]];
  return position < 0 ? 0 : std::int64_t{position} + 1;
}

void prepare_rows(Work& work) {
  const TensorView& q = work.call->inputs[0];
  const bool all_keys = work.call->input_count == 3;
  const std::int64_t all = work.call->inputs[1].shape[1];
  for (std::int64_t row = 0; row < work.rows; ++row) {
    const std::int64_t token = work.first_token + row / work.heads;
    const std::int64_t head = row % work.heads;
    const std::int64_t end = all_keys ? all : visible_keys(work, token);
    const std::int64_t first = work.window > 0 && end > work.window ? end - work.window : 0;
    visible_of(work, row) = static_cast<std::int32_t>(end);
    first_of(work, row) = static_cast<std::int32_t>(first);
    if (end > 0 && (work.visible == 0 || first < work.first)) work.first = first;
    if (end > work.visible) work.visible = end;
    const float* from = static_cast<const float*>(q.data) + work.b * q.strides[0] +
                        work.kv_head * q.strides[1] + head * q.strides[2] + token * q.strides[3];
    for (std::int64_t e = 0; e < work.plan.head; ++e) query_of(work, row)[e] = from[e * q.strides[4]];
    for (std::int64_t e = 0; e < work.plan.value_padded; e += 16) store(output_of(work, row) + e, zero16());
    store(sums_of(work, row), zero16());
    largest_of(work, row) = -__builtin_inff();
  }
}

Source source_of(const Work& work, const TensorView& view, std::int64_t first_key) {
  const std::int64_t offset =
      work.sequence * view.strides[0] + first_key * view.strides[1] + work.kv_head * view.strides[2];
  return {static_cast<const char*>(view.data) + source_bytes(view.dtype, offset), view.dtype, view.strides[1],
          1};
}

// A tile of keys and values that many rows read: values in f32, in place if they are whole vectors of it,
// else converted to scratch. Its functions and those of StreamedTile have the same names.
struct SharedTile {
  static constexpr std::int64_t kKeysAtOnce = kKeys;
  Operand values;
};

SharedTile load_shared(const Work& work, std::int64_t first_key, std::int64_t keys) {
  const Source source = source_of(work, work.call->inputs[2], first_key);
  if (source.dtype == DType::F32 && work.plan.value % 16 == 0) {
    return {{reinterpret_cast<const float*>(source.data), source.row, 1}};
  }
  float* values = work.scratch + work.plan.values;
  load_straight(source, keys, work.plan.value, values, work.plan.value_padded);
  return {{values, work.plan.value_padded, 1}};
}

[[gnu::always_inline]] inline Operand keys_of(const SharedTile&, const float* transposed, std::int64_t key) {
  return {transposed + key, kKeys, 1};
}
[[gnu::always_inline]] inline Operand values_of(const SharedTile& tile, std::int64_t first,
                                                std::int64_t column) {
  return {tile.values.data + first * tile.values.row + column, tile.values.row, 1};
}

// A tile that one block of rows reads.
template <DType kType>
struct StreamedTile {
  static constexpr std::int64_t kKeysAtOnce = kStreamedKeys;
  Source values, next_keys;
  std::int64_t ahead = 0;  // bytes from its values to those of the next tile
};

template <DType kType>
[[gnu::always_inline]] inline KeyColumns<kType> keys_of(const StreamedTile<kType>& tile,
                                                        const float* transposed, std::int64_t key) {
  const std::int64_t row = source_bytes(kType, tile.next_keys.row);
  return {transposed + key, tile.next_keys.data + key * row, row};
}
template <DType kType>
[[gnu::always_inline]] inline ValueColumns<kType> values_of(const StreamedTile<kType>& tile,
                                                            std::int64_t first, std::int64_t column) {
  const std::int64_t row = source_bytes(kType, tile.values.row);
  return {tile.values.data + first * row, row, column, tile.ahead};
}

// scores [kRows, kKeys] of kRows rows from `row` on against the key tile in scratch, of its first `keys` keys
// rounded up to whole groups.
template <int kRows, int kGroups, class Tile>
void score(const Work& work, std::int64_t row, std::int64_t keys, const Tile& tile, float* scores) {
  const Operand queries = {query_of(work, row), work.plan.head, 1};
  const Vec16 scale = broadcast(work.scale);
  for (std::int64_t key = 0; key < keys; key += 16 * kGroups) {
    Accumulators<kRows, kGroups> sums;
    clear(sums);
    multiply(queries, keys_of(tile, work.scratch + work.plan.keys, key), work.plan.head, sums);
    for (int r = 0; r < kRows; ++r) {
      for (int group = 0; group < kGroups; ++group) {
        const Vec16 scaled = mul(sums.at[r][group], scale);
        store(scores + r * kKeys + key + 16 * group,
              work.softcap == 0 ? scaled : mul(tanh(scaled), broadcast(work.softcap)));
      }
    }
  }
}

// Turns the row's scores into p, with the keys [begin, keys) visible, and brings m, l and o to the new
// maximum.
void update_softmax(const Work& work, std::int64_t row, std::int64_t begin, std::int64_t keys,
                    float* scores) {
  const Vec16 hidden = broadcast(-__builtin_inff());
  Vec16 s[4];
  for (int group = 0; group < 4; ++group) {
    const std::int64_t left = keys - 16 * group;
    s[group] = load(scores + 16 * group);
    if (left < 16) s[group] = select(first_lanes(left > 0 ? static_cast<int>(left) : 0), s[group], hidden);
    const std::int64_t before_first = begin - 16 * group;
    if (before_first > 0) {
      s[group] = select(first_lanes(static_cast<int>(smaller(16, before_first))), hidden, s[group]);
    }
  }
  const float before = largest_of(work, row);
  const float here = max_lane(max(max(s[0], s[1]), max(s[2], s[3])));
  const float after = before > here ? before : here;
  // Where every score so far is -inf, -inf - -inf would make NaN of weights that a later key may turn into 0.
  const Vec16 subtracted = broadcast(after == -__builtin_inff() ? 0.0F : after);
  for (Vec16& group : s) group = exp(sub(group, subtracted));
  for (int group = 0; group < 4; ++group) store(scores + 16 * group, s[group]);
  const Vec16 added = add(add(s[0], s[1]), add(s[2], s[3]));
  float* sums = sums_of(work, row);
  if (before == after) {
    store(sums, add(load(sums), added));
    return;
  }
  const Vec16 factor = exp(sub(broadcast(before), subtracted));
  store(sums, add(mul(load(sums), factor), added));
  float* out = output_of(work, row);
  for (std::int64_t e = 0; e < work.plan.value_padded; e += 16) store(out + e, mul(load(out + e), factor));
  largest_of(work, row) = after;
}

template <int kRows, int kGroups, class Columns>
[[gnu::always_inline]] inline void add_values(const Operand& weights, const Columns& values,
                                              std::int64_t keys, float* out, std::int64_t out_row) {
  Accumulators<kRows, kGroups> sums;
  for (int r = 0; r < kRows; ++r) {
    for (int group = 0; group < kGroups; ++group) sums.at[r][group] = load(out + r * out_row + 16 * group);
  }
  multiply(weights, values, keys, sums);
  for (int r = 0; r < kRows; ++r) {
    for (int group = 0; group < kGroups; ++group) store(out + r * out_row + 16 * group, sums.at[r][group]);
  }
}

// Groups of columns for a block of that many rows: eight sums at least hide the latency of two units, and
// sixteen are all that the registers hold.
constexpr int streamed_groups(int rows) {
  if (kThisIsa == Isa::Avx512) return rows > 1 ? 2 : 4;
  return rows > 2 ? 1 : 2;
}

// The keys of a tile, from its first on: [begin, end).
struct Span {
  std::int64_t begin, end;
};

Span seen_by(const Work& work, std::int64_t row, std::int64_t first_key) {
  const std::int64_t begin = first_of(work, row) - first_key;
  return {begin > 0 ? begin : 0, smaller(kKeys, visible_of(work, row) - first_key)};
}

// o of kRows rows from `row` on, over the keys of `span`; scores hold p.
template <int kRows, int kGroups, class Tile>
void add_span(const Work& work, std::int64_t row, Span span, const Tile& tile, const float* scores) {
  const std::int64_t width = work.plan.value_padded;
  float* out = output_of(work, row);
  for (std::int64_t key = span.begin; key < span.end; key += Tile::kKeysAtOnce) {
    const Operand weights = {scores + key, kKeys, 1};
    const std::int64_t keys = smaller(Tile::kKeysAtOnce, span.end - key);
    std::int64_t e = 0;
    for (; e + 16 * kGroups <= width; e += 16 * kGroups)
      add_values<kRows, kGroups>(weights, values_of(tile, key, e), keys, out + e, width);
    for (; e < width; e += 16) add_values<kRows, 1>(weights, values_of(tile, key, e), keys, out + e, width);
  }
}

// kRows rows against the tile. Rows of one block may see different keys: those that all see are added for all
// rows at once, those before and after them row by row, so that each row adds its own in order.
template <int kRows, int kGroups, class Tile>
void attend(const Work& work, std::int64_t row, std::int64_t first_key, const Tile& tile) {
  Span spans[kRows];
  Span common = {0, kKeys};
  std::int64_t last = 0;
  for (int r = 0; r < kRows; ++r) {
    spans[r] = seen_by(work, row + r, first_key);
    if (spans[r].begin > common.begin) common.begin = spans[r].begin;
    if (spans[r].end < common.end) common.end = spans[r].end;
    if (spans[r].end > last) last = spans[r].end;
  }
  if (last <= 0) return;
  float* scores = work.scratch + work.plan.scores;
  score<kRows, kGroups>(work, row, last, tile, scores);
  for (int r = 0; r < kRows; ++r) {
    if (spans[r].begin < spans[r].end)
      update_softmax(work, row + r, spans[r].begin, spans[r].end, scores + r * kKeys);
  }
  if (common.begin >= common.end) common = {kKeys, kKeys};
  for (int r = 0; kRows > 1 && r < kRows; ++r) {
    const Span before = {spans[r].begin, smaller(spans[r].end, common.begin)};
    add_span<1, kGroupBlock>(work, row + r, before, tile, scores + r * kKeys);
  }
  add_span<kRows, kGroups>(work, row, kRows > 1 ? common : spans[0], tile, scores);
  for (int r = 0; kRows > 1 && r < kRows; ++r) {
    const Span after = {common.end, spans[r].end};
    add_span<1, kGroupBlock>(work, row + r, after, tile, scores + r * kKeys);
  }
}

// The first tile: nothing has asked for it.
void fetch_tile(const Work& work, std::int64_t first_key) {
  const std::int64_t keys = smaller(kKeys, work.visible - first_key);
  for (const int input : {1, 2}) {
    const Source source = source_of(work, work.call->inputs[input], first_key);
    const std::int64_t bytes = source_bytes(source.dtype, input == 1 ? work.plan.head : work.plan.value);
    for (std::int64_t key = 0; key < keys; ++key) {
      for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(element_at(source, key, 0) + i);
    }
  }
}

// All rows of a tile of work that has kRows of them.
template <int kRows, DType kType>
void attend_streamed(const Work& work, std::int64_t first_key, const StreamedTile<kType>& tile) {
  if constexpr (kRows > 0) {
    if (work.rows != kRows) return attend_streamed<kRows - 1>(work, first_key, tile);
    attend<kRows, streamed_groups(kRows)>(work, 0, first_key, tile);
  }
}

template <DType kType>
void attend_streamed(const Work& work, std::int64_t first_key) {
  const Source values = source_of(work, work.call->inputs[2], first_key);
  const Source next_values = source_of(work, work.call->inputs[2], first_key + kKeys);
  const StreamedTile<kType> tile = {values, source_of(work, work.call->inputs[1], first_key + kKeys),
                                    next_values.data - values.data};
  attend_streamed<kStreamedRows>(work, first_key, tile);
}

// True if it was done.
bool attend_streamed(const Work& work, std::int64_t first_key) {
  const DType dtype = work.call->inputs[1].dtype;
  if (work.rows > kStreamedRows || work.plan.value % 16 != 0 || dtype != work.call->inputs[2].dtype)
    return false;
  switch (dtype) {
    case DType::F32:
      attend_streamed<DType::F32>(work, first_key);
      return true;
    case DType::F16:
      attend_streamed<DType::F16>(work, first_key);
      return true;
    case DType::Q8_0:
      attend_streamed<DType::Q8_0>(work, first_key);
      return true;
    default:
      attend_streamed<DType::BF16>(work, first_key);
      return true;
  }
}

void attend_tile(const Work& work, std::int64_t first_key) {
  const std::int64_t keys = smaller(kKeys, work.visible - first_key);
  load_transposed(source_of(work, work.call->inputs[1], first_key), keys, work.plan.head,
                  work.scratch + work.plan.keys);
  if (attend_streamed(work, first_key)) return;
  fetch_tile(work, first_key + kKeys);
  const SharedTile tile = load_shared(work, first_key, keys);
  std::int64_t row = 0;
  for (; row + kBlockRows <= work.rows; row += kBlockRows)
    attend<kBlockRows, kBlockGroups>(work, row, first_key, tile);
  for (; row + 2 <= work.rows; row += 2) attend<2, kGroupBlock>(work, row, first_key, tile);
  if (row < work.rows) attend<1, kGroupBlock>(work, row, first_key, tile);
}

void write_rows(const Work& work) {
  const TensorView& out = work.call->outputs[0];
  for (std::int64_t row = 0; row < work.rows; ++row) {
    const std::int64_t token = work.first_token + row / work.heads;
    const std::int64_t offset = work.b * out.strides[0] + token * out.strides[1] +
                                work.kv_head * out.strides[2] + row % work.heads * out.strides[3];
    // Rounded, the row is finished where it lies: to q8a V is whole blocks.
    const bool rounded = out.dtype != DType::F32;
    float* to = rounded ? output_of(work, row) : static_cast<float*>(out.data) + offset;
    const Vec16 divisor = broadcast(visible_of(work, row) == 0 ? 1.0F : sum(load(sums_of(work, row))));
    for (std::int64_t e = 0; e < work.plan.value; e += 16) {
      store_partial(to + e, div(load(output_of(work, row) + e), divisor),
                    static_cast<int>(smaller(16, work.plan.value - e)));
    }
    if (out.dtype == DType::BF16) {
      for (std::int64_t e = 0; e < work.plan.value; e += 16)
        store_bf16_partial(static_cast<std::uint16_t*>(out.data) + offset + e, load(to + e),
                           static_cast<int>(smaller(16, work.plan.value - e)));
    }
    if (out.dtype == DType::Q8A)
      quantize_row(to, work.plan.value, static_cast<BlockQ8A*>(out.data) + offset / 32);
  }
}

// The end of the run of one sequence that begins at token `begin`: steps that double, and then halve.
std::int64_t end_of_run(const TensorView& sequence, std::int64_t begin) {
  const auto* of = static_cast<const std::int32_t*>(sequence.data);
  const std::int64_t tokens = sequence.shape[1];
  const std::int64_t stride = sequence.strides[1];
  const std::int32_t own = of[begin * stride];
  std::int64_t step = 1;
  std::int64_t inside = begin;
  while (inside + step < tokens && of[(inside + step) * stride] == own) {
    inside += step;
    step *= 2;
  }
  for (; step > 0; step /= 2) {
    if (inside + step < tokens && of[(inside + step) * stride] == own) inside += step;
  }
  return inside + 1;
}

// The tokens of block `block`; none behind the last block.
void find_tokens(Work& work, std::int64_t block) {
  const TensorView& q = work.call->inputs[0];
  const std::int64_t per_tile = tokens_per_tile(work.heads);
  if (work.call->input_count < 5) {
    const std::int64_t blocks = blocks_of(q.shape[3], per_tile);
    work.b = work.sequence = block / blocks;
    work.first_token = block % blocks * per_tile;
    work.tokens = smaller(per_tile, q.shape[3] - work.first_token);
    return;
  }
  const TensorView& sequence = work.call->inputs[4];
  for (std::int64_t begin = 0; begin < q.shape[3];) {
    const std::int64_t end = end_of_run(sequence, begin);
    const std::int64_t blocks = blocks_of(end - begin, per_tile);
    if (block < blocks) {
      work.sequence = sequence_of(*work.call, 4, 0, begin);
      work.first_token = begin + block * per_tile;
      work.tokens = smaller(per_tile, end - work.first_token);
      return;
    }
    block -= blocks;
    begin = end;
  }
}

void attention_run(const Call& call, std::int64_t tile) {
  const TensorView& q = call.inputs[0];
  Work work;
  work.call = &call;
  work.plan = plan_of(call);
  work.scratch = reinterpret_cast<float*>(call.scratch);
  const double scale = attribute_real(call.attributes, "scale", 1.0);
  const double softcap = attribute_real(call.attributes, "softcap", 0.0);
  work.scale = static_cast<float>(softcap == 0 ? scale : scale / softcap);
  work.softcap = static_cast<float>(softcap);
  work.window = attribute_integer(call.attributes, "window", 0);
  work.heads = q.shape[2];
  const std::int64_t blocks =
      call.input_count < 5 ? blocks_of(q.shape[3], tokens_per_tile(work.heads)) : token_blocks(call);
  const std::int64_t outer = tile / blocks;  // (b, kv head), or in a flattened step the kv head
  work.kv_head = outer % q.shape[1];
  find_tokens(work, outer / q.shape[1] * blocks + tile % blocks);
  if (work.tokens == 0) return;
  work.rows = work.tokens * work.heads;
  prepare_rows(work);
  fetch_tile(work, work.first / kKeys * kKeys);
  for (std::int64_t key = work.first / kKeys * kKeys; key < work.visible; key += kKeys)
    attend_tile(work, key);
  write_rows(work);
}

constexpr Kernel kKernels[] = {
    {HONE_KERNEL_NAME("attention.online"), "attention", kThisIsa, false, accepts_attention, attention_tiles,
     attention_run, attention_scratch},
};

}  // namespace

KernelList attention_kernels() {
  return {kKernels, 1};
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
