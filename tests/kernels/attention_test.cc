// Attention against softmax in double, across ISA levels, and one row's bits under every change around it.
#include <cmath>
#include <numeric>

#include "vector_test_support.h"

namespace hone::test {
namespace {

class AttentionTest : public PerLevel {};
INSTANTIATE_TEST_SUITE_P(Levels, AttentionTest, testing::ValuesIn(kVectorLevels), level_name);

struct Sizes5 {
  std::int64_t batch, kv_heads, group, tokens, head, capacity;
  std::int64_t value_head = 0;  // V; 0: as E
};

// One attention problem. The queries are stored [B,T,K,G,E] and permuted, as the graph has them.
struct Problem {
  Sizes5 sizes;
  double scale;
  double softcap = 0;
  std::int64_t window = 0;
  Tensor q, k, v, positions, out;

  Problem(const Sizes5& s, DType cache, std::uint64_t seed)
      : sizes(s),
        scale(1.0 / std::sqrt(static_cast<double>(s.head))),
        q(DType::F32, {s.batch, s.tokens, s.kv_heads, s.group, s.head}, 1, 4),
        k(cache, {s.batch, s.capacity, s.kv_heads, s.head}, 2, shift_of(cache)),
        v(cache, {s.batch, s.capacity, s.kv_heads, value_head(s)}, 1, shift_of(cache)),
        positions(DType::I32, {s.batch, s.tokens}),
        out(DType::F32, {s.batch, s.tokens, s.kv_heads, s.group, value_head(s)}, 0, 4) {
    std::mt19937_64 random(seed);
    q.fill_normal(random, 2.0);
    k.fill_normal(random, 2.0);
    v.fill_normal(random);
  }
  static std::int64_t shift_of(DType cache) {
    return cache == DType::Q8_0 ? 2 : kernels::element_bytes(cache);
  }
  static std::int64_t value_head(const Sizes5& s) { return s.value_head == 0 ? s.head : s.value_head; }
  // Token t of sequence b stands at first + t.
  void place(std::int64_t b, std::int64_t first) {
    for (std::int64_t t = 0; t < sizes.tokens; ++t)
      positions.set(b * sizes.tokens + t, static_cast<double>(first + t));
  }
  Launch launch() {
    Attributes attributes{{"scale", scale}};
    if (softcap != 0) attributes.set("softcap", softcap);
    if (window != 0) attributes.set("window", window);
    return {"attention",
            attributes,
            {q.permuted({0, 2, 3, 1, 4}), k.view(), v.view(), positions.view()},
            {out.view()}};
  }
  double key(std::int64_t b, std::int64_t c, std::int64_t kv, std::int64_t e) const {
    return k.get(((b * sizes.capacity + c) * sizes.kv_heads + kv) * sizes.head + e);
  }
  double value(std::int64_t b, std::int64_t c, std::int64_t kv, std::int64_t e) const {
    return v.get(((b * sizes.capacity + c) * sizes.kv_heads + kv) * value_head(sizes) + e);
  }
};

// The row's outputs in double with the rounding bound of the documented order.
//
// u = 2^-24. A score errs by E + 1 roundings of sum |q||k| * scale, and so does the maximum that is
// subtracted, but that cancels between numerator and denominator. exp errs by 2u and by the rounding of its
// argument, at most u times the range of the scores, once directly and once per rescaling; a rescaling rounds
// its product too (u), and there is one per tile of 64 keys. The chain over the keys rounds once per key, the
// sum of p once per tile and six times in the tree, the quotient once. Numerator and denominator both carry
// it: factor 2. A softcap adds the error of tanh, 2 ulp = 4u of the cap, and the rounding of its product.
void expect_row(const Problem& p, std::int64_t b, std::int64_t t, std::int64_t kv, std::int64_t g) {
  const Sizes5& s = p.sizes;
  const std::int64_t row = ((b * s.tokens + t) * s.kv_heads + kv) * s.group + g;
  const auto visible = static_cast<std::int64_t>(p.positions.get(b * s.tokens + t)) + 1;
  const std::int64_t begin = p.window == 0 ? 0 : std::max<std::int64_t>(0, visible - p.window);
  std::vector<double> weights(static_cast<std::size_t>(visible));
  double largest = -INFINITY;
  double smallest = INFINITY;
  double magnitude = 0;
  for (std::int64_t c = begin; c < visible; ++c) {
    double score = 0;
    double absolute = 0;
    for (std::int64_t e = 0; e < s.head; ++e) {
      const double term = p.q.get(row * s.head + e) * p.key(b, c, kv, e) * p.scale;
      score += term;
      absolute += std::abs(term);
    }
    if (p.softcap != 0) score = p.softcap * std::tanh(score / p.softcap);
    weights[static_cast<std::size_t>(c)] = score;
    largest = std::max(largest, score);
    smallest = std::min(smallest, score);
    magnitude = std::max(magnitude, absolute);
  }
  double sum = 0;
  for (std::int64_t c = begin; c < visible; ++c) {
    double& weight = weights[static_cast<std::size_t>(c)];
    sum += weight = std::exp(weight - largest);
  }
  const double tiles = static_cast<double>((visible + 63) / 64);
  const double roundings = (static_cast<double>(s.head) + 2) * magnitude +
                           (1 + tiles) * (largest - smallest + 2) + static_cast<double>(visible) + 2 * tiles +
                           7 + 6 * p.softcap;
  const double relative = std::min(2.02 * roundings * 0x1p-24, 1e-3);
  const std::int64_t width = Problem::value_head(s);
  for (std::int64_t e = 0; e < width; ++e) {
    double expected = 0;
    double absolute = 0;
    for (std::int64_t c = begin; c < visible; ++c) {
      const double term = weights[static_cast<std::size_t>(c)] / sum * p.value(b, c, kv, e);
      expected += term;
      absolute += std::abs(term);
    }
    ASSERT_LE(std::abs(p.out.get(row * width + e) - expected), relative * absolute)
        << "E " << s.head << " G " << s.group << " b " << b << " t " << t << " head " << kv << "," << g
        << " e " << e;
  }
}

TEST_P(AttentionTest, AgainstDouble) {
  constexpr DType kCaches[] = {DType::F32, DType::F16, DType::BF16};
  std::uint64_t seed = 0;
  for (const std::int64_t head : {1, 8, 16, 20, 64, 80, 128}) {
    for (const std::int64_t group : {1, 3, 5}) {
      for (const std::int64_t tokens : {1, 2, 23}) {
        Problem p({2, 2, group, tokens, head, 140}, kCaches[seed % 3], seed);
        ++seed;
        p.place(0, 140 - tokens);
        p.place(1, static_cast<std::int64_t>(seed) % 66);
        run_and_compare_levels(p.launch(), p.out, GetParam());
        for (std::int64_t row = 0; row < 2 * tokens * 2 * group; ++row) {
          expect_row(p, row / group / 2 / tokens, row / group / 2 % tokens, row / group % 2, row % group);
        }
      }
    }
  }
}

TEST_P(AttentionTest, EveryLengthUpToTwoTiles) {
  for (const DType cache : {DType::F16, DType::Q8_0}) {
    for (std::int64_t visible = 1; visible <= 130; ++visible) {
      Problem p({1, 1, 2, 1, 32, 130}, cache, static_cast<std::uint64_t>(visible));
      p.place(0, visible - 1);
      run_and_compare_levels(p.launch(), p.out, GetParam());
      expect_row(p, 0, 0, 0, 0);
      expect_row(p, 0, 0, 0, 1);
    }
  }
}

// One to nine rows, the shapes of decode: as many as are streamed, and one more; windows begin and end inside
// of tiles.
TEST_P(AttentionTest, FewRowsOverEveryCache) {
  std::uint64_t seed = 300;
  for (const DType cache : {DType::F32, DType::F16, DType::BF16, DType::Q8_0}) {
    for (std::int64_t group = 1; group <= 9; ++group) {
      for (const std::int64_t head : {32, 96}) {
        Problem p({2, 2, group, 1, head, 200, head == 96 ? 64 : 0}, cache, seed++);
        if (seed % 3 == 0) p.window = 70;
        p.place(0, 199);
        p.place(1, static_cast<std::int64_t>(seed * 7 % 190));
        run_and_compare_levels(p.launch(), p.out, GetParam());
        for (std::int64_t row = 0; row < 2 * 2 * group; ++row)
          expect_row(p, row / group / 2, 0, row / group % 2, row % group);
      }
    }
  }
}

// A row of few, streamed, has the bits that it has among many, which share a copy of the tile.
TEST_P(AttentionTest, StreamedRowsHaveTheBitsOfSharedOnes) {
  for (const DType cache : {DType::F32, DType::F16, DType::BF16, DType::Q8_0}) {
    const std::int64_t tokens = 40;
    Problem p({1, 2, 3, tokens, 64, 200}, cache, 77);
    p.window = 90;
    p.place(0, 200 - tokens);
    run_fast(p.launch(), GetParam());
    for (std::int64_t t = 0; t < tokens; t += 3) {
      Launch one = p.launch();
      Tensor out(DType::F32, {1, 1, 2, 3, 64});
      one.inputs[0].shape[3] = 1;
      one.inputs[0].data = static_cast<float*>(one.inputs[0].data) + t * one.inputs[0].strides[3];
      one.inputs[3].shape[1] = 1;
      one.inputs[3].data = p.positions.data<std::int32_t>() + t;
      one.outputs = {out.view()};
      run_fast(one, GetParam());
      ASSERT_EQ(std::memcmp(out.data<float>(), p.out.data<float>() + t * 384, 384 * sizeof(float)), 0)
          << dtype_name(cache) << " token " << t;
    }
  }
}

// Windows that end inside a tile, at its edge, and beyond the first key; values narrower and wider than keys.
TEST_P(AttentionTest, WindowSoftcapAndValuesOfAnotherWidth) {
  std::uint64_t seed = 100;
  for (const std::int64_t window : {1, 2, 63, 64, 65, 100, 1000}) {
    for (const std::int64_t tokens : {1, 33}) {
      for (const std::int64_t value_head : {20, 16, 80}) {
        Problem p({2, 2, 3, tokens, 20, 200, value_head}, seed % 2 == 0 ? DType::F32 : DType::F16, seed);
        ++seed;
        p.window = window;
        p.softcap = seed % 3 == 0 ? 0 : 3.0;
        p.place(0, 200 - tokens);
        p.place(1, static_cast<std::int64_t>(seed) % 70);
        run_and_compare_levels(p.launch(), p.out, GetParam());
        for (std::int64_t row = 0; row < 2 * tokens * 2 * 3; ++row) {
          expect_row(p, row / 3 / 2 / tokens, row / 3 / 2 % tokens, row / 3 % 2, row % 3);
        }
      }
    }
  }
}

// A key that has left the window must not reach a row through a weight of zero, whichever block it shares.
TEST_P(AttentionTest, KeysBeforeTheWindowStayHidden) {
  const std::int64_t tokens = 40;
  Problem p({1, 1, 1, tokens, 16, 150}, DType::F32, 21);
  p.window = 50;
  p.place(0, 150 - tokens);
  run_fast(p.launch(), GetParam());
  const std::vector<float> before(p.out.data<float>(), p.out.data<float>() + tokens * 16);
  for (std::int64_t c = 0; c < 150 - 50; ++c) {
    for (std::int64_t e = 0; e < 16; ++e) {
      p.k.set(c * 16 + e, NAN);
      p.v.set(c * 16 + e, INFINITY);
    }
  }
  run_fast(p.launch(), GetParam());
  const float* last = p.out.data<float>() + (tokens - 1) * 16;
  ASSERT_EQ(std::memcmp(last, before.data() + (tokens - 1) * 16, 16 * sizeof(float)), 0);
  ASSERT_TRUE(std::isnan(last[-16]));
}

// The output rows [tokens, K*G*E] of sequence 0.
std::vector<float> rows_of(Problem& p) {
  const std::int64_t count = p.sizes.tokens * p.sizes.kv_heads * p.sizes.group * p.sizes.head;
  return {p.out.data<float>(), p.out.data<float>() + count};
}

// A prompt of 90 tokens at once, in chunks, on threads, in a larger cache full of NaN, beside another
// sequence.
TEST_P(AttentionTest, RowBitsDependOnNothingElse) {
  const std::int64_t tokens = 90;
  for (const std::int64_t group : {1, 3, 70}) {
    const std::int64_t width = 2 * group * 24;
    Problem whole({1, 2, group, tokens, 24, tokens}, DType::F16, 5);
    whole.place(0, 0);
    run_fast(whole.launch(), GetParam());
    const std::vector<float> expected = rows_of(whole);
    for (int threads = 2; threads <= 4; ++threads) {
      std::fill(whole.out.storage().begin(), whole.out.storage().end(), std::byte{0});
      run_fast(whole.launch(), GetParam(), threads);
      ASSERT_EQ(rows_of(whole), expected) << threads << " threads";
    }
    for (const std::int64_t chunk : {1, 2, 7, 17, 64}) {
      for (std::int64_t first = 0; first < tokens; first += chunk) {
        const std::int64_t count = std::min(chunk, tokens - first);
        Launch part = whole.launch();
        Tensor out(DType::F32, {1, count, 2, group, 24});
        part.inputs[0].shape[3] = count;
        part.inputs[0].data = static_cast<float*>(part.inputs[0].data) + first * part.inputs[0].strides[3];
        part.inputs[3].shape[1] = count;
        part.inputs[3].data = whole.positions.data<std::int32_t>() + first;
        part.outputs = {out.view()};
        run_fast(part, GetParam());
        ASSERT_EQ(
            std::memcmp(out.data<float>(), expected.data() + first * width, count * width * sizeof(float)), 0)
            << "tokens " << first << ".." << first + count;
      }
    }
    Problem larger({2, 2, group, tokens, 24, 200}, DType::F16, 6);
    for (std::int64_t i = 0; i < product(larger.k.sizes()); ++i) {
      const bool inside = i < tokens * 2 * 24;
      larger.k.set(i, inside ? whole.k.get(i) : NAN);
      larger.v.set(i, inside ? whole.v.get(i) : NAN);
    }
    for (std::int64_t i = 0; i < tokens * width; ++i) larger.q.set(i, whole.q.get(i));
    larger.place(0, 0);
    larger.place(1, 60);
    run_fast(larger.launch(), GetParam());
    ASSERT_EQ(std::memcmp(larger.out.data<float>(), expected.data(), expected.size() * sizeof(float)), 0);
  }
}

// A later key of another token, even NaN, must not reach a row through a weight of zero.
TEST_P(AttentionTest, HiddenKeysStayHidden) {
  Problem p({1, 1, 1, 8, 16, 8}, DType::F32, 11);
  p.place(0, 0);
  run_fast(p.launch(), GetParam());
  const std::vector<float> before = rows_of(p);
  for (std::int64_t e = 0; e < 16; ++e) {
    p.k.set(5 * 16 + e, NAN);
    p.v.set(5 * 16 + e, INFINITY);
  }
  run_fast(p.launch(), GetParam());
  const std::vector<float> after = rows_of(p);
  ASSERT_EQ(std::memcmp(before.data(), after.data(), 5 * 16 * sizeof(float)), 0);
  ASSERT_TRUE(std::isnan(after[5 * 16]));
}

TEST_P(AttentionTest, PaddingGivesZerosAndDisturbsNothing) {
  Problem p({1, 2, 3, 9, 20, 100}, DType::BF16, 12);
  p.place(0, 70);
  run_fast(p.launch(), GetParam());
  std::vector<float> expected = rows_of(p);
  for (const std::int64_t padding : {0, 4, 8}) p.positions.set(padding, -1);
  run_fast(p.launch(), GetParam());
  for (const std::int64_t padding : {0, 4, 8}) {
    std::fill_n(expected.begin() + padding * 120, 120, 0.0F);
  }
  ASSERT_EQ(rows_of(p), expected);
}

// A step of sequences with these numbers of tokens, flattened: the queries and outputs of each behind one
// another, over the cache that `all` has.
struct Flattened {
  Tensor q, positions, sequence, out;

  Flattened(Problem& all, const std::vector<std::int64_t>& lengths, std::int64_t tokens)
      : q(DType::F32, {1, tokens, all.sizes.kv_heads, all.sizes.group, all.sizes.head}, 1, 4),
        positions(DType::I32, {1, tokens}),
        sequence(DType::I32, {1, tokens}),
        out(DType::F32, {1, tokens, all.sizes.kv_heads, all.sizes.group, all.sizes.head}, 0, 4) {
    const std::int64_t width = all.sizes.kv_heads * all.sizes.group * all.sizes.head;
    std::int64_t at = 0;
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      for (std::int64_t t = 0; t < lengths[b]; ++t, ++at) {
        const std::int64_t from = static_cast<std::int64_t>(b) * all.sizes.tokens + t;
        for (std::int64_t i = 0; i < width; ++i) q.set(at * width + i, all.q.get(from * width + i));
        positions.set(at, all.positions.get(from));
        sequence.set(at, static_cast<double>(b));
      }
    }
  }
  Launch launch(Problem& all) {
    Launch launch = all.launch();
    launch.inputs[0] = q.permuted({0, 2, 3, 1, 4});
    launch.inputs[3] = positions.view();
    launch.inputs.push_back(sequence.view());
    launch.outputs = {out.view()};
    return launch;
  }
};

// Prompts beside single tokens, a sequence without any, a padding token, one sequence alone; blocks of 64, 21
// and one token. A dense step computes each sequence in tiles of its own, whatever else there is.
TEST_P(AttentionTest, AFlattenedStepHasTheBitsOfEachSequenceAlone) {
  const std::vector<std::vector<std::int64_t>> steps{
      {70, 1, 0, 5, 1}, {1, 1, 1, 1, 1}, {0, 0, 66, 0, 0}, {64, 64, 1, 65, 2}, {0, 0, 0, 0, 1}};
  for (const std::int64_t group : {1, 3, 70}) {
    Problem dense({5, 2, group, 70, 24, 150}, DType::F16, static_cast<std::uint64_t>(30 + group));
    dense.window = group == 3 ? 40 : 0;
    for (std::int64_t b = 0; b < 5; ++b) dense.place(b, b * 17);
    dense.positions.set(3, -1);
    run_fast(dense.launch(), GetParam());
    const std::int64_t width = 2 * group * 24;
    for (const std::vector<std::int64_t>& lengths : steps) {
      const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
      Flattened flat(dense, lengths, tokens);
      for (const int threads : {1, 3}) {
        std::fill(flat.out.storage().begin(), flat.out.storage().end(), std::byte{0x55});
        run_fast(flat.launch(dense), GetParam(), threads);
        const float* row = flat.out.data<float>();
        for (std::size_t b = 0; b < lengths.size(); ++b) {
          const auto size = static_cast<std::size_t>(lengths[b] * width);
          const float* expected = dense.out.data<float>() + static_cast<std::int64_t>(b) * 70 * width;
          ASSERT_EQ(std::memcmp(row, expected, size * sizeof(float)), 0)
              << "sequence " << b << " of " << testing::PrintToString(lengths) << ", " << group << " heads";
          row += size;
        }
      }
    }
  }
}

// Tiles are counted by shapes: a step of one sequence has those of a dense one, one token each no more.
TEST_P(AttentionTest, AFlattenedStepHasFewTilesMore) {
  Problem dense({8, 2, 3, 70, 24, 80}, DType::F16, 40);
  const auto tiles = [](const Launch& launch, Isa isa) {
    Call call;
    call.attributes = &launch.attributes;
    call.inputs = launch.inputs.data();
    call.outputs = launch.outputs.data();
    call.input_count = static_cast<int>(launch.inputs.size());
    return find_kernel(launch, isa)->tile_count(call);
  };
  EXPECT_EQ(tiles(dense.launch(), GetParam()), 2 * 8 * 4);  // blocks of 21 tokens
  Flattened decode(dense, std::vector<std::int64_t>(8, 1), 8);
  EXPECT_EQ(tiles(decode.launch(dense), GetParam()), 2 * 8);
  Flattened mixed(dense, {70, 1, 1, 1, 1, 1, 1, 1}, 77);
  EXPECT_EQ(tiles(mixed.launch(dense), GetParam()), 2 * ((77 + 8 * 20) / 21));  // all at work: 4 + 7
  Problem one({1, 2, 3, 70, 24, 80}, DType::F16, 41);
  Flattened alone(one, {70}, 70);
  EXPECT_EQ(tiles(alone.launch(one), GetParam()), tiles(one.launch(), GetParam()));
}

// Scores that rise by 200 from tile to tile make every earlier weight vanish: the last key wins. Falling, the
// first does.
TEST_P(AttentionTest, LargeScoresNeitherOverflowNorVanish) {
  for (const bool rising : {true, false}) {
    Problem p({1, 1, 1, 1, 16, 190}, DType::F32, 13);
    p.scale = 1.0;
    p.place(0, 189);
    for (std::int64_t i = 0; i < 16; ++i) p.q.set(i, i == 0 ? 1.0 : 0.0);
    for (std::int64_t c = 0; c < 190; ++c) p.k.set(c * 16, static_cast<double>(rising ? c : -c) * 200.0);
    run_and_compare_levels(p.launch(), p.out, GetParam());
    for (std::int64_t e = 0; e < 16; ++e) ASSERT_EQ(p.out.get(e), p.value(0, rising ? 189 : 0, 0, e));
  }
}

}  // namespace
}  // namespace hone::test
