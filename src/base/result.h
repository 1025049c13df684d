// Errors as values. Library code never prints, never aborts and never throws across its API: it returns a
// Result<T>, and the error says whose fault it is, where, what was expected, what was found and what to try.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace hone {

// Whose fault an error is. `Hone` is a bug of this program.
enum class Fault { User, File, Hone };

// The class of an error; it decides the exit code of the command (apps/exit_code.h) and the JSON field
// `code`.
enum class ErrorCode {
  Internal,     // hone's own fault: exit 1
  Usage,        // wrong flags or arguments: exit 2
  BadFile,      // bytes that break the rules of their format, or a file that cannot be read: exit 3
  BadModel,     // a well-formed file that hone cannot turn into a model: exit 3
  BadInput,     // a prompt, template, message list or request that cannot be used: exit 3
  DoesNotFit,   // over the memory budget or the machine: exit 4
  CheckFailed,  // verify, --strict: exit 5
  Interrupted,  // by a signal: exit 130
};

struct Error {
  ErrorCode code = ErrorCode::Internal;
  Fault fault = Fault::Hone;
  std::string where;        // file and byte offset, or op and module path, or flag
  std::string message;      // the rule that is broken, one sentence
  std::string expected;     // may be empty
  std::string actual;       // may be empty
  std::string next_step{};  // the command or action to try; JSON field `try`
};

inline Error internal_error(std::string where, std::string message) {
  return Error{ErrorCode::Internal,
               Fault::Hone,
               std::move(where),
               std::move(message),
               {},
               {},
               "report this with the command line that shows it"};
}

// Either a value or an Error. Built implicitly from both, so `return value;` and `return Error{...};` work.
template <class T>
class [[nodiscard]] Result {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  // NOLINTEND(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  void value() const {}
  const Error& error() const& { return error_; }
  Error error() && { return std::move(error_); }

 private:
  bool failed_ = false;
  Error error_;
};

using Status = Result<void>;

}  // namespace hone

// HONE_TRY(expression): the value of a Result, or return its error from the enclosing function.
#define HONE_TRY(expression)                                                \
  __extension__({                                                           \
    auto hone_try_result_ = (expression);                                   \
    if (!hone_try_result_.ok()) return std::move(hone_try_result_).error(); \
    std::move(hone_try_result_).value();                                    \
  })
