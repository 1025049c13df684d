// A plugin that cannot be used. HONE_TEST_FAULT says why.
#include <csignal>
#include <string_view>

#include "hone/hone_pass.h"

namespace {

constexpr std::string_view kFault = HONE_TEST_FAULT;

const int kLoaded = kFault == "load" ? std::raise(SIGSEGV) : 0;

int run(const char* graph, hone_answer answer, void* hone) {
  answer(hone, graph);
  return kLoaded;
}

const hone_pass kPass{kFault == "abi" ? HONE_PASS_ABI + 1 : HONE_PASS_ABI,
                      kFault == "name" ? "No Name" : "fine",
                      kFault == "contract" ? "nearly the same" : "same bits",
                      nullptr,
                      kFault == "place"       ? "somewhere"
                      : kFault == "neighbour" ? "after fuse-nrom"
                                              : "after cse",
                      kFault == "level" ? 9 : 1,
                      "a test",
                      kFault == "run" ? nullptr : run};

}  // namespace

const hone_pass* hone_plugin_pass(int index) {
  return index == 0 && kFault != "empty" ? &kPass : nullptr;
}
