// The floating-point environment that hone's arithmetic assumes: round to nearest even, subnormals kept. A
// library that was linked with fast-math turns on flush-to-zero for the thread that loads it, and threads
// inherit that.
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace hone {

#if defined(__SSE__)
inline constexpr unsigned kStandardMxcsr = 0x1f80;  // all exceptions masked, nearest even, no FTZ, no DAZ
inline unsigned read_float_control() {
  return _mm_getcsr();
}
inline void write_float_control(unsigned value) {
  _mm_setcsr(value);
}
#else
inline constexpr unsigned kStandardMxcsr = 0;
inline unsigned read_float_control() {
  return 0;
}
inline void write_float_control(unsigned) {}
#endif

// Sets the standard environment for the current thread and puts the former one back at the end of the scope.
class FloatEnvironment {
 public:
  FloatEnvironment() : former_(read_float_control()) { write_float_control(kStandardMxcsr); }
  ~FloatEnvironment() { write_float_control(former_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  unsigned former_;
};

}  // namespace hone
