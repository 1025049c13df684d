#include "kernels/reference/strip_ops.h"

#include <cmath>

namespace hone::kernels::reference {
namespace {

template <class F>
void map_reals(const Strip& a, const Strip& b, std::int64_t count, double* out, F f) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = f(a.real[i], b.real[i]);
}
template <class F>
void map_integers(const Strip& a, const Strip& b, std::int64_t count, std::int64_t* out, F f) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = f(a.integer[i], b.integer[i]);
}
template <class F>
void compare(const Strip& a, const Strip& b, std::int64_t count, std::int64_t* out, F f) {
  const bool real = is_real(a.dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = (real ? f(a.real[i], b.real[i]) : f(a.integer[i], b.integer[i])) ? 1 : 0;
  }
}

double larger(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return a > b ? a : b;
}
double smaller(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  return a < b ? a : b;
}

// Arithmetic modulo 2^64; the caller wraps to the type.
std::int64_t wrapping(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}
std::uint64_t word(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

void apply_real(StripOp op, const Strip& a, const Strip& b, std::int64_t count, double* out) {
  switch (op) {
    case StripOp::Neg:
      return map_reals(a, a, count, out, [](double x, double) { return -x; });
    case StripOp::Abs:
      return map_reals(a, a, count, out, [](double x, double) { return std::fabs(x); });
    case StripOp::Exp:
      return map_reals(a, a, count, out, [](double x, double) { return std::exp(x); });
    case StripOp::Log:
      return map_reals(a, a, count, out, [](double x, double) { return std::log(x); });
    case StripOp::Sqrt:
      return map_reals(a, a, count, out, [](double x, double) { return std::sqrt(x); });
    case StripOp::Rsqrt:
      return map_reals(a, a, count, out, [](double x, double) { return 1 / std::sqrt(x); });
    case StripOp::Sin:
      return map_reals(a, a, count, out, [](double x, double) { return std::sin(x); });
    case StripOp::Cos:
      return map_reals(a, a, count, out, [](double x, double) { return std::cos(x); });
    case StripOp::Tanh:
      return map_reals(a, a, count, out, [](double x, double) { return std::tanh(x); });
    case StripOp::Add:
      return map_reals(a, b, count, out, [](double x, double y) { return x + y; });
    case StripOp::Sub:
      return map_reals(a, b, count, out, [](double x, double y) { return x - y; });
    case StripOp::Mul:
      return map_reals(a, b, count, out, [](double x, double y) { return x * y; });
    case StripOp::Div:
      return map_reals(a, b, count, out, [](double x, double y) { return x / y; });
    case StripOp::Pow:
      return map_reals(a, b, count, out, [](double x, double y) { return std::pow(x, y); });
    case StripOp::Max:
      return map_reals(a, b, count, out, larger);
    case StripOp::Min:
      return map_reals(a, b, count, out, smaller);
    default:
      return;
  }
}

void apply_integer(StripOp op, const Strip& a, const Strip& b, std::int64_t count, std::int64_t* out) {
  using Int = std::int64_t;
  switch (op) {
    case StripOp::Neg:
      return map_integers(a, a, count, out, [](Int x, Int) { return wrapping(0 - word(x)); });
    case StripOp::Abs:
      return map_integers(a, a, count, out, [](Int x, Int) { return x < 0 ? wrapping(0 - word(x)) : x; });
    case StripOp::Add:
      return map_integers(a, b, count, out, [](Int x, Int y) { return wrapping(word(x) + word(y)); });
    case StripOp::Sub:
      return map_integers(a, b, count, out, [](Int x, Int y) { return wrapping(word(x) - word(y)); });
    case StripOp::Mul:
      return map_integers(a, b, count, out, [](Int x, Int y) { return wrapping(word(x) * word(y)); });
    case StripOp::Max:
      return map_integers(a, b, count, out, [](Int x, Int y) { return x > y ? x : y; });
    case StripOp::Min:
      return map_integers(a, b, count, out, [](Int x, Int y) { return x < y ? x : y; });
    case StripOp::And:
      return map_integers(a, b, count, out, [](Int x, Int y) { return x & y; });
    case StripOp::Or:
      return map_integers(a, b, count, out, [](Int x, Int y) { return x | y; });
    case StripOp::Not:
      return map_integers(a, a, count, out, [](Int x, Int) { return Int{x == 0 ? 1 : 0}; });
    default:
      return;
  }
}

void select(const Strip& condition, const Strip& b, const Strip& c, std::int64_t count, Strip& out) {
  const bool real = is_real(b.dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool first = condition.integer[i] != 0;
    if (real) {
      out.real[i] = first ? b.real[i] : c.real[i];
    } else {
      out.integer[i] = first ? b.integer[i] : c.integer[i];
    }
  }
  out.dtype = b.dtype;
}

}  // namespace

void load_strip(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                Strip& out) {
  out.dtype = view.dtype;
  if (is_real(view.dtype)) return load_reals(view, offset, stride, count, out.real);
  load_integers(view, offset, stride, count, out.integer);
}

void convert_strip(Strip& strip, DType dtype, std::int64_t count) {
  const bool from_real = is_real(strip.dtype);
  if (is_real(dtype)) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (from_real) {
        strip.real[i] = round_to(strip.real[i], dtype);
      } else if (dtype == DType::F32) {
        strip.real[i] =
            static_cast<double>(static_cast<float>(strip.integer[i]));  // one rounding, from all 64 bits
      } else {
        strip.real[i] = round_to(static_cast<double>(strip.integer[i]), dtype);
      }
    }
  } else {
    for (std::int64_t i = 0; i < count; ++i) {
      strip.integer[i] = from_real ? truncate_to(strip.real[i], dtype) : wrap_to(strip.integer[i], dtype);
    }
  }
  strip.dtype = dtype;
}

void store_strip(const TensorView& view, std::int64_t offset, std::int64_t stride, std::int64_t count,
                 Strip& strip) {
  if (strip.dtype != view.dtype) convert_strip(strip, view.dtype, count);
  if (is_real(view.dtype)) return store_reals(view, offset, stride, count, strip.real);
  store_integers(view, offset, stride, count, strip.integer);
}

void apply_strip(StripOp op, DType dtype, const Strip& a, const Strip& b, const Strip& c, std::int64_t count,
                 Strip& out) {
  switch (op) {
    case StripOp::Cast:
      if (&out != &a) out = a;
      return convert_strip(out, dtype, count);
    case StripOp::Select:
      select(a, b, c, count, out);
      return convert_strip(out, dtype, count);
    case StripOp::Less:
      compare(a, b, count, out.integer, [](auto x, auto y) { return x < y; });
      out.dtype = DType::Bool;
      return;
    case StripOp::LessEqual:
      compare(a, b, count, out.integer, [](auto x, auto y) { return x <= y; });
      out.dtype = DType::Bool;
      return;
    case StripOp::Equal:
      compare(a, b, count, out.integer, [](auto x, auto y) { return x == y; });
      out.dtype = DType::Bool;
      return;
    default:
      break;
  }
  if (is_real(a.dtype)) {
    apply_real(op, a, b, count, out.real);
    out.dtype = DType::F64;
  } else {
    apply_integer(op, a, b, count, out.integer);
    out.dtype = DType::I64;
  }
  convert_strip(out, dtype, count);
}

}  // namespace hone::kernels::reference
