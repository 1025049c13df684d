// Random copies, concatenations, appends, choices and strips: the fast kernel's values are the reference
// kernel's.
#include <cmath>
#include <numeric>

#include "random_launches.h"

namespace hone::test {
namespace {

constexpr DType kMovedTypes[] = {DType::U8, DType::F16, DType::F32, DType::F64};

// Whole numbers that every type holds.
std::shared_ptr<Tensor> small_numbers(Draw& draw, DType dtype, Sizes sizes) {
  auto tensor = std::make_shared<Tensor>(dtype, std::move(sizes), draw.up_to(2) == 0 ? draw.up_to(5) : 0);
  for (std::int64_t i = 0; i < product(tensor->sizes()); ++i)
    tensor->set(i, static_cast<double>(draw.up_to(100)));
  return tensor;
}

// A view of the tensor with its axes in a random order.
TensorView shuffled(Draw& draw, Tensor& tensor) {
  std::vector<int> order(tensor.sizes().size());
  std::iota(order.begin(), order.end(), 0);
  if (draw.coin()) std::shuffle(order.begin(), order.end(), draw.random);
  return tensor.permuted(order);
}

// Some axes of size 1 repeat, by a stride of 0.
RandomLaunch random_copy(Draw& draw, std::string_view) {
  const DType dtype = draw.in_turn(std::span<const DType>(kMovedTypes));
  auto x = small_numbers(draw, dtype, {draw.size(2), draw.size(17), draw.size(40)});
  TensorView from = shuffled(draw, *x);
  for (int axis = 0; axis < from.rank; ++axis) {
    if (from.shape[axis] != 1 || draw.coin()) continue;
    from.shape[axis] = draw.size(9);
    from.strides[axis] = 0;
  }
  auto out = small_numbers(draw, dtype, {from.shape, from.shape + from.rank});
  RandomLaunch made;
  made.owners = {x, out};
  made.launch = {"copy", {}, {from}, {out->view()}};
  return made;
}

RandomLaunch random_concat(Draw& draw, std::string_view) {
  const DType dtype = draw.in_turn(std::span<const DType>(kMovedTypes));
  const auto axis = static_cast<std::size_t>(draw.up_to(2));
  const Sizes other{draw.up_to(4), draw.up_to(5), draw.size(40)};
  Sizes whole = other;
  whole[axis] = 0;
  RandomLaunch made;
  made.launch = {"concat", {{"axis", static_cast<std::int64_t>(axis)}}, {}, {}};
  for (std::int64_t part = draw.between(1, 4); part > 0; --part) {
    Sizes sizes = other;
    sizes[axis] = draw.size(20);
    auto x = small_numbers(draw, dtype, sizes);
    made.owners.push_back(x);
    made.launch.inputs.push_back(x->view());
    whole[axis] += sizes[axis];
  }
  auto out = small_numbers(draw, dtype, whole);
  made.owners.push_back(out);
  made.launch.outputs = {out->view()};
  return made;
}

// Rows at positions that are all different, some of them padding.
RandomLaunch random_append(Draw& draw, std::string_view) {
  const DType dtype = draw.in_turn(std::span<const DType>(kMovedTypes));
  const std::int64_t batch = draw.between(1, 3);
  const std::int64_t tokens = draw.size(6);
  const std::int64_t capacity = tokens + draw.up_to(5);
  const std::int64_t heads = draw.between(1, 3);
  // Every third state is q8_0, and its rows of f32 are rounded; values of all sizes, the infinite among them.
  const bool blocks = draw.number % 3 == 0;
  const std::int64_t width = blocks ? 32 * draw.between(1, 3) : draw.size(33);
  auto state = blocks ? normal_tensor(draw, DType::Q8_0, {batch, capacity, heads, width})
                      : small_numbers(draw, dtype, {batch, capacity, heads, width});
  auto source = blocks ? normal_tensor(draw, DType::F32, {batch, heads, tokens, width},
                                       std::pow(10.0, draw.between(-42, 38)))
                       : small_numbers(draw, dtype, {batch, heads, tokens, width});
  auto positions = std::make_shared<Tensor>(DType::I32, Sizes{batch, tokens});
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<double> places(static_cast<std::size_t>(capacity));
    std::iota(places.begin(), places.end(), 0.0);
    std::shuffle(places.begin(), places.end(), draw.random);
    for (std::int64_t t = 0; t < tokens; ++t)
      positions->set(b * tokens + t, draw.up_to(5) == 0 ? -1.0 : places[static_cast<std::size_t>(t)]);
  }
  RandomLaunch made;
  made.owners = {state, source, positions};
  made.launch = {"state_append",
                 {},
                 {state->view(), source->permuted({0, 2, 1, 3}), positions->view()},
                 {state->view()}};
  return made;
}

RandomLaunch random_take(Draw& draw, std::string_view) {
  const DType dtype = draw.in_turn(std::span<const DType>(kMovedTypes));
  const Sizes sizes{draw.up_to(3), draw.size(9), draw.at_least_one(40)};
  const std::int64_t count = draw.size(8);
  auto x = small_numbers(draw, dtype, sizes);
  auto places = std::make_shared<Tensor>(DType::I32, Sizes{sizes[0], sizes[1], count});
  for (std::int64_t i = 0; i < product(places->sizes()); ++i)
    places->set(i, static_cast<double>(draw.up_to(sizes[2] - 1)));
  auto out = small_numbers(draw, dtype, places->sizes());
  RandomLaunch made;
  made.owners = {x, places, out};
  made.launch = {"take_along_axis", {{"axis", std::int64_t{-1}}}, {x->view(), places->view()}, {out->view()}};
  return made;
}

RandomLaunch random_top_k(Draw& draw, std::string_view) {
  const Sizes sizes{draw.up_to(3), draw.size(9), draw.at_least_one(64)};
  const std::int64_t count = draw.between(1, std::min<std::int64_t>(sizes[2], 8));
  auto x = small_numbers(draw, DType::F32, sizes);  // so that there are ties
  auto out = std::make_shared<Tensor>(DType::I32, Sizes{sizes[0], sizes[1], count});
  RandomLaunch made;
  made.owners = {x, out};
  made.launch = {"top_k", {{"k", count}}, {x->view()}, {out->view()}};
  return made;
}

// Operations that round once: on every type, the reference kernel's values.
StripOp random_operation(Draw& draw) {
  static constexpr StripOp kOperations[] = {StripOp::Add, StripOp::Sub, StripOp::Mul,
                                            StripOp::Max, StripOp::Min, StripOp::Cast};
  return draw.of(std::span<const StripOp>(kOperations));
}

RandomLaunch random_strips(Draw& draw, std::string_view) {
  static constexpr DType kTypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I8,
                                     DType::U8,  DType::I16, DType::I32, DType::U32,  DType::I64};
  const DType dtype = draw.in_turn(std::span<const DType>(kTypes));
  const StripOp op = random_operation(draw);
  const int arity = op == StripOp::Cast ? 1 : 2;
  const DType result = op == StripOp::Cast ? draw.of(std::span<const DType>(kTypes)) : dtype;
  auto program = std::make_shared<StripProgram>();
  RandomLaunch made;
  made.launch = {"fused_elementwise", {}, {}, {}, program.get()};
  made.owners.push_back(program);
  Sizes full{draw.up_to(3), draw.size(5), draw.coin() ? draw.size(kStripLength) : draw.size(20)};
  if (draw.up_to(9) == 0) full = {1, 1, draw.size(4096)};
  for (int i = 0; i < arity; ++i) {
    Sizes sizes = full;
    for (std::int64_t& size : sizes) {
      if (draw.up_to(4) == 0) size = std::min<std::int64_t>(size, 1);
    }
    auto x = small_numbers(draw, dtype, sizes);
    made.owners.push_back(x);
    made.launch.inputs.push_back(x->view());
    program->instructions.push_back({StripOp::Load, dtype, i, i, -1, -1, 0});
  }
  program->instructions.push_back({op, result, 0, 0, arity > 1 ? 1 : -1, -1, 0});
  program->instructions.push_back({StripOp::Store, result, -1, 0, 0, -1, 0});
  program->register_count = arity;
  auto out = small_numbers(draw, result, full);
  made.owners.push_back(out);
  made.launch.outputs = {out->view()};
  made.what = std::string(dtype_name(dtype)) + " to " + std::string(dtype_name(result)) + ", operation " +
              std::to_string(static_cast<int>(op));
  return made;
}

constexpr Generator kMoveGenerators[] = {
    {"copy", random_copy},           {"concat", random_concat},
    {"state_append", random_append}, {"take_along_axis", random_take},
    {"top_k", random_top_k},         {"fused_elementwise", random_strips}};

}  // namespace

std::span<const Generator> move_generators() {
  return kMoveGenerators;
}

}  // namespace hone::test
