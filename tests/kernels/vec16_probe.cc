#include "vec16_probe.h"

#include "kernels/fast/math16.h"
#include "kernels/fast/vec16.h"

namespace hone::kernels::HONE_ISA_NAMESPACE {

void run_vec16_probe(const float* a, const float* b, const float* c, const std::uint16_t* halves, int count,
                     Vec16Probe* out) {
  const Vec16 x = load(a);
  const Vec16 y = load(b);
  const Vec16 z = load(c);
  const Vec16 results[] = {add(x, y),
                           sub(x, y),
                           mul(x, y),
                           div(x, y),
                           fma(x, y, z),
                           min(x, y),
                           max(x, y),
                           sqrt(absolute(x)),
                           load_f16(halves),
                           load_bf16(halves),
                           exp(z),
                           select(less(x, y), y, negate(z)),
                           load_partial(a, count),
                           load_f16_partial(halves, count),
                           load_bf16_partial(halves, count)};
  for (int i = 0; i < 15; ++i) store(out->results[i], results[i]);
  store_partial(out->results[15], y, count);
  const Vec16i i = load_i(reinterpret_cast<const std::int32_t*>(a));
  const Vec16i j = load_i(reinterpret_cast<const std::int32_t*>(b));
  // Within the range in which the conversions are defined.
  const Vec16 small = mul(to_f32(shift_right<9>(i)), broadcast(0.125F));
  const Vec16i integers[] = {add_i(i, j),
                             sub_i(i, j),
                             to_i32(small),
                             to_i32_truncate(small),
                             xor_i(i, j),
                             or_i(shift_left<3>(i), shift_right_logical<5>(j)),
                             select_i(less_i(i, j), i, load_i8(reinterpret_cast<const std::int8_t*>(halves))),
                             load_i_partial(reinterpret_cast<const std::int32_t*>(b), count)};
  for (int n = 0; n < 8; ++n) store_i(out->integers[n], integers[n]);
  store_f16(out->halves[0], x);
  store_bf16(out->halves[1], y);
  store_f16_partial(out->halves[2], x, count);
  store_bf16_partial(out->halves[3], y, count);
  out->sum = sum(x);
  out->max_lane = max_lane(x);
  out->masks[0] = mask_bits(less_equal(x, y));
  out->masks[1] = mask_bits(mask_or(equal(x, y), mask_not(less(y, x))));
  out->masks[2] = mask_bits(mask_and(is_nan(x), first_lanes(count)));
  out->masks[3] = mask_bits(equal_i(and_i(i, broadcast_i(7)), broadcast_i(3)));
}

}  // namespace hone::kernels::HONE_ISA_NAMESPACE
