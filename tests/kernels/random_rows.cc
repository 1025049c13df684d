// Random norms, softmax, reductions, rope and attention; the bounds are derived in rows_test.cc and
// attention_test.cc.
#include <cmath>

#include "random_launches.h"

namespace hone::test {
namespace {

constexpr std::int64_t kLengthTile = 256;

// f32 rows, or q8a where they are whole blocks.
TensorView random_row_output(Draw& draw, RandomLaunch& to, const Sizes& sizes, bool may_be_blocks) {
  if (may_be_blocks && sizes.back() % 32 == 0 && draw.coin()) {
    auto out = std::make_shared<Blocks>(sizes, draw.up_to(2) == 0 ? 1 : 0);
    to.owners.push_back(out);
    return out->view;
  }
  auto out = normal_tensor(draw, DType::F32, sizes);
  to.owners.push_back(out);
  return out->view();
}

Sizes random_row_sizes(Draw& draw) {
  const std::int64_t length = draw.coin() ? draw.at_least_one(kLengthTile) : draw.between(1, 8) * 32;
  return {draw.between(1, 2), draw.size(5), length};
}

std::string describe_sizes(const Sizes& sizes) {
  std::string text = "[";
  for (const std::int64_t size : sizes) text += (text.size() > 1 ? "," : "") + std::to_string(size);
  return text + "]";
}

// The scale, two products and the weight with its offset are rounded, and the reference kernel's value.
RandomLaunch random_rms_norm(Draw& draw, std::string_view) {
  const Sizes sizes = random_row_sizes(draw);
  RandomLaunch made;
  auto x = normal_tensor(draw, DType::F32, sizes);
  auto w = normal_tensor(draw, DType::F32, {sizes[2]});
  made.owners = {x, w};
  const TensorView out = random_row_output(draw, made, sizes, true);
  made.launch = {"rms_norm", {{"eps", 1e-5}}, {x->view(), w->view()}, {out}};
  if (draw.coin()) made.launch.attributes.set("offset", 1.0);
  made.what = describe_sizes(sizes);
  made.bound = [](std::size_t, std::int64_t, double reference) {
    return 5.1 * kUnitRoundoff * std::fabs(reference);
  };
  return made;
}

constexpr double kNextEps = 0.25;  // far from the first norm's, so that one for the other shows

// The sum of the first norm's product, with 5.1 roundings of it, and the residual is rounded once; an error
// of it moves a value of the second norm directly and through the scale, by at most its share of the row's
// length.
RandomLaunch random_norm_add(Draw& draw, std::string_view) {
  const Sizes sizes = random_row_sizes(draw);
  const std::int64_t length = sizes[2];
  RandomLaunch made;
  auto x = normal_tensor(draw, DType::F32, sizes);
  auto w = normal_tensor(draw, DType::F32, {length});
  auto residual = normal_tensor(draw, DType::F32, sizes);
  auto next = normal_tensor(draw, DType::F32, {length});
  made.owners = {x, w, residual, next};
  const TensorView sum = random_row_output(draw, made, sizes, false);
  made.launch = {"norm_add", {{"eps", 1e-5}}, {x->view(), w->view(), residual->view()}, {sum}};
  if (draw.coin()) {
    made.launch.attributes.set("next_eps", kNextEps);
    made.launch.inputs.push_back(next->view());
    made.launch.outputs.push_back(random_row_output(draw, made, sizes, false));
  }
  made.what = describe_sizes(sizes);
  std::vector<double> values;
  std::vector<double> errors;
  std::vector<double> lengths;  // of each row
  std::vector<double> error_lengths;
  for (std::int64_t row = 0; row < product(sizes) / length; ++row) {
    double squares = 0;
    for (std::int64_t k = 0; k < length; ++k) squares += std::pow(x->get(row * length + k), 2);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(length) + 1e-5);
    double of_values = 0;
    double of_errors = 0;
    for (std::int64_t k = 0; k < length; ++k) {
      const double normed = x->get(row * length + k) * scale * w->get(k);
      values.push_back(residual->get(row * length + k) + normed);
      errors.push_back(1.01 * kUnitRoundoff * (5.1 * std::fabs(normed) + std::fabs(values.back())));
      of_values += values.back() * values.back();
      of_errors += errors.back() * errors.back();
    }
    lengths.push_back(std::sqrt(of_values + kNextEps * static_cast<double>(length)));
    error_lengths.push_back(std::sqrt(of_errors));
  }
  made.bound = [=](std::size_t output, std::int64_t i, double reference) {
    const auto at = static_cast<std::size_t>(i);
    if (output == 0) return errors[at] + kUnitRoundoff * std::fabs(reference);
    const auto row = static_cast<std::size_t>(i / length);
    const double scale = std::sqrt(static_cast<double>(length)) / lengths[row];
    const double moved = errors[at] + std::fabs(values[at]) * error_lengths[row] / lengths[row];
    return 2.02 * scale * std::fabs(next->get(i % length)) * moved +
           5.1 * kUnitRoundoff * std::fabs(reference);
  };
  return made;
}

RandomLaunch random_layer_norm(Draw& draw, std::string_view) {
  const Sizes sizes = random_row_sizes(draw);
  RandomLaunch made;
  auto x = normal_tensor(draw, DType::F32, sizes);
  auto w = normal_tensor(draw, DType::F32, {sizes[2]});
  auto b = normal_tensor(draw, DType::F32, {sizes[2]});
  made.owners = {x, w, b};
  const TensorView out = random_row_output(draw, made, sizes, true);
  made.launch = {"layer_norm", {{"eps", 1e-5}}, {x->view(), w->view(), b->view()}, {out}};
  made.what = describe_sizes(sizes);
  std::vector<double> means;
  std::vector<double> scales;
  const std::int64_t length = sizes[2];
  for (std::int64_t row = 0; row < product(sizes) / length; ++row) {
    double mean = 0;
    double variance = 1e-5;
    for (std::int64_t k = 0; k < length; ++k) mean += x->get(row * length + k) / static_cast<double>(length);
    for (std::int64_t k = 0; k < length; ++k)
      variance += std::pow(x->get(row * length + k) - mean, 2) / static_cast<double>(length);
    means.push_back(mean);
    scales.push_back(1 / std::sqrt(variance));
  }
  made.bound = [=](std::size_t, std::int64_t i, double reference) {
    const double mean = means[static_cast<std::size_t>(i / length)];
    const double scale = scales[static_cast<std::size_t>(i / length)];
    const double centred = std::fabs(x->get(i) - mean);
    const double weight = std::fabs(w->get(i % length));
    const double centring = (std::fabs(mean) + centred) * scale * weight;
    return 1.01 * kUnitRoundoff *
           (centring + centred * scale * weight * (std::fabs(mean) * scale + 4) + 2 * std::fabs(reference));
  };
  return made;
}

RandomLaunch random_softmax(Draw& draw, std::string_view) {
  const Sizes sizes = random_row_sizes(draw);
  RandomLaunch made;
  auto x = normal_tensor(draw, DType::F32, sizes, 6.0);
  if (product(sizes) > 0 && sizes[2] > 2) x->set(1, -INFINITY);
  made.owners = {x};
  const TensorView out = random_row_output(draw, made, sizes, false);
  made.launch = {"softmax", {}, {x->view()}, {out}};
  made.what = describe_sizes(sizes);
  made.bound = [](std::size_t, std::int64_t, double reference) {
    const double distance = reference > 0 ? -std::log(reference) : 0;  // of x from the largest, or more
    return reference * (distance + 48) * kUnitRoundoff + 0x1p-148;
  };
  return made;
}

// f64 partial sums, rounded once, as the reference kernel's.
RandomLaunch random_reduction(Draw& draw, std::string_view stem) {
  Sizes sizes = random_row_sizes(draw);
  if (draw.up_to(19) == 0) sizes[2] = 0;
  const std::int64_t keep = draw.up_to(1);
  RandomLaunch made;
  auto x = normal_tensor(draw, DType::F32, sizes);
  auto out = std::make_shared<Tensor>(DType::F32,
                                      keep == 1 ? Sizes{sizes[0], sizes[1], 1} : Sizes{sizes[0], sizes[1]});
  made.owners = {x, out};
  const std::string op(stem.substr(0, stem.find('.')));
  made.launch = {op, {{"axis", std::int64_t{-1}}, {"keep_dims", keep}}, {x->view()}, {out->view()}};
  made.what = describe_sizes(sizes);
  const auto length = static_cast<double>(sizes[2]);
  made.bound = [length, exact = op == "reduce_max"](std::size_t, std::int64_t, double reference) {
    return exact ? 0 : 2.01 * kUnitRoundoff * std::fabs(reference) + 10 * length * length * 0x1p-53;
  };
  return made;
}

// Two products and their sum; elements beyond 2R are copied.
RandomLaunch random_rope(Draw& draw, std::string_view) {
  const std::int64_t head = draw.between(1, 64) * 2;
  const std::int64_t half = draw.coin() ? head / 2 : draw.between(1, head / 2);
  const Sizes sizes{draw.between(1, 2), draw.size(4), draw.between(1, 4), head};
  auto x = normal_tensor(draw, DType::F32, sizes);
  auto cosine = normal_tensor(draw, DType::F32, {sizes[0], sizes[1], half});
  auto sine = normal_tensor(draw, DType::F32, {sizes[0], sizes[1], half});
  auto out = normal_tensor(draw, DType::F32, sizes);
  RandomLaunch made;
  made.owners = {x, cosine, sine, out};
  const std::int64_t interleaved = draw.up_to(1);
  made.launch = {
      "rope", {{"interleaved", interleaved}}, {x->view(), cosine->view(), sine->view()}, {out->view()}};
  made.what = describe_sizes(sizes) + ", R " + std::to_string(2 * half);
  made.bound = [=, heads = sizes[2]](std::size_t, std::int64_t i, double reference) {
    const std::int64_t e = i % head;
    if (e >= 2 * half) return 0.0;
    const std::int64_t pair = interleaved == 1 ? e / 2 : e % half;
    const bool second = interleaved == 1 ? e % 2 == 1 : e >= half;
    const std::int64_t step = interleaved == 1 ? 1 : half;
    const std::int64_t turn = i / head / heads * half + pair;
    const double magnitude = std::fabs(x->get(i) * cosine->get(turn)) +
                             std::fabs(x->get(second ? i - step : i + step) * sine->get(turn));
    return 1.01 * kUnitRoundoff * (2 * magnitude + std::fabs(reference));
  };
  return made;
}

constexpr Generator kRowGenerators[] = {{"rms_norm", random_rms_norm},     {"norm_add", random_norm_add},
                                        {"layer_norm", random_layer_norm}, {"softmax", random_softmax},
                                        {"reduce_sum", random_reduction},  {"reduce_mean", random_reduction},
                                        {"reduce_max", random_reduction},  {"rope", random_rope}};

// One attention: the queries stored [B,T,K,G,E].
struct AttentionSizes {
  std::int64_t batch, kv_heads, group, tokens, head, value_head, capacity;
};

// `blocks`: heads of whole blocks of q8_0.
AttentionSizes random_attention_sizes(Draw& draw, bool blocks) {
  AttentionSizes s{};
  do {
    s.batch = draw.between(1, 2);
    s.kv_heads = draw.between(1, 2);
    s.group = draw.up_to(9) == 0 ? 70 : draw.between(1, 9);
    s.tokens = draw.coin() ? 1 : draw.size(64 / std::min<std::int64_t>(s.group, 32));
    s.head = blocks ? 32 * draw.between(1, 4) : draw.at_least_one(40);
    s.value_head = blocks || draw.coin() ? 32 * draw.between(1, 3) : draw.at_least_one(40);
    s.capacity = std::max(s.tokens, draw.at_least_one(64));
  } while (s.batch * s.kv_heads * s.group * s.tokens * s.capacity * (s.head + s.value_head) > 600000);
  return s;
}

double largest_row_norm(const Tensor& x, std::int64_t width) {
  double largest = 0;
  for (std::int64_t row = 0; row < product(x.sizes()) / width; ++row) {
    double sum = 0;
    for (std::int64_t e = 0; e < width; ++e) sum += std::pow(x.get(row * width + e), 2);
    largest = std::max(largest, std::sqrt(sum));
  }
  return largest;
}

// The roundings of attention_test.cc with |q| |k| for the sum of magnitudes of a score and the largest |v|
// for that of a value.
RandomLaunch random_attention(Draw& draw, std::string_view) {
  static constexpr DType kCaches[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0};
  const DType cache = draw.in_turn(std::span<const DType>(kCaches));
  const AttentionSizes s = random_attention_sizes(draw, cache == DType::Q8_0);
  auto q = normal_tensor(draw, DType::F32, {s.batch, s.tokens, s.kv_heads, s.group, s.head});
  auto k = normal_tensor(draw, cache, {s.batch, s.capacity, s.kv_heads, s.head});
  auto v = normal_tensor(draw, cache, {s.batch, s.capacity, s.kv_heads, s.value_head});
  auto positions = std::make_shared<Tensor>(DType::I32, Sizes{s.batch, s.tokens});
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t first = draw.up_to(s.capacity - s.tokens);
    for (std::int64_t t = 0; t < s.tokens; ++t)
      positions->set(b * s.tokens + t, draw.up_to(15) == 0 ? -1.0 : static_cast<double>(first + t));
  }
  RandomLaunch made;
  made.owners = {q, k, v, positions};
  const TensorView out =
      random_row_output(draw, made, {s.batch, s.tokens, s.kv_heads, s.group, s.value_head}, true);
  const double scale = 1 / std::sqrt(static_cast<double>(s.head));
  const double softcap = draw.coin() ? 0 : 3;
  made.launch = {
      "attention", {{"scale", scale}}, {q->permuted({0, 2, 3, 1, 4}), k->view(), v->view()}, {out}};
  if (draw.up_to(4) != 0) {
    made.launch.inputs.push_back(positions->view());
    if (draw.coin()) made.launch.attributes.set("window", draw.at_least_one(64));
  }
  if (softcap != 0) made.launch.attributes.set("softcap", softcap);
  made.what = describe_sizes(q->sizes()) + " over " + describe_sizes(v->sizes());
  const double score = scale * largest_row_norm(*q, s.head) * largest_row_norm(*k, s.head);
  const double range = 2 * (softcap != 0 ? std::min(softcap, score) : score);
  const double tiles = static_cast<double>((s.capacity + 63) / 64);
  const double roundings = (static_cast<double>(s.head) + 2) * score + (1 + tiles) * (range + 2) +
                           static_cast<double>(s.capacity) + 2 * tiles + 7 + 6 * softcap;
  const double bound = 2.02 * roundings * kUnitRoundoff * largest_row_norm(*v, 1);
  made.bound = [bound](std::size_t, std::int64_t, double reference) {
    return bound + kUnitRoundoff * std::fabs(reference);
  };
  return made;
}

constexpr Generator kAttentionGenerators[] = {{"attention", random_attention}};

}  // namespace

std::span<const Generator> row_generators() {
  return kRowGenerators;
}
std::span<const Generator> attention_generators() {
  return kAttentionGenerators;
}

}  // namespace hone::test
