# The flags of every target, and the functions with which each folder declares its library, tests and fuzz targets.

add_library(hone_flags INTERFACE)
target_include_directories(hone_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(hone_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror
                                            -Wno-sign-conversion -fno-omit-frame-pointer
                                            # An FMA happens where the source says so and nowhere else: the
                                            # same bits on every ISA level depend on it.
                                            -ffp-contract=off -fno-fast-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bugs 105329 and 105651: it sees std::string's operators write outside of the short buffer. AddressSanitizer and clang
  # look for true ones.
  target_compile_options(hone_flags INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # GNU statement expressions carry HONE_TRY (base/result.h); clang warns of them even behind __extension__.
  target_compile_options(hone_flags INTERFACE -Wno-gnu-statement-expression-from-macro-expansion)
  # clang sees std::stable_sort of libstdc++ 12 call a function that the same library marks deprecated; g++ still
  # warns of our own uses.
  target_compile_options(hone_flags INTERFACE -Wno-deprecated-declarations)
endif()
if(HONE_SANITIZE)
  # What a target is not to be checked for stands in its property HONE_SANITIZE_EXCEPT, as -fno-sanitize= takes it.
  target_compile_options(hone_flags INTERFACE -fsanitize=${HONE_SANITIZE} -fno-sanitize-recover=all
                                              $<$<BOOL:$<TARGET_PROPERTY:HONE_SANITIZE_EXCEPT>>:-fno-sanitize=$<TARGET_PROPERTY:HONE_SANITIZE_EXCEPT>>)
  target_compile_definitions(hone_flags INTERFACE _GLIBCXX_ASSERTIONS)
  target_link_options(hone_flags INTERFACE -fsanitize=${HONE_SANITIZE})
endif()
if(HONE_FUZZ)
  target_compile_options(hone_flags INTERFACE -fsanitize=address,undefined,fuzzer-no-link
                                              -fprofile-instr-generate -fcoverage-mapping)
  target_link_options(hone_flags INTERFACE -fsanitize=address,undefined -fprofile-instr-generate)
endif()

# With HONE_TOGETHER the headers of other projects are parsed once for each kind of target: hone_headers_static for libraries,
# _program for commands, _test for tests. The other builds parse them in each source, so a missing #include does not hide.
function(hone_headers kind)
  if(NOT HONE_TOGETHER)
    return()
  endif()
  set(target hone_headers_${kind})
  if(kind STREQUAL "static")
    add_library(${target} STATIC ${CMAKE_SOURCE_DIR}/cmake/headers.cc)
  else()
    add_executable(${target} ${CMAKE_SOURCE_DIR}/cmake/headers.cc)
    target_compile_options(${target} PRIVATE ${HONE_PROGRAM_OPTIONS})
  endif()
  target_link_libraries(${target} PRIVATE hone_flags fmt::fmt nlohmann_json::nlohmann_json)
  target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/headers.h)
  if(kind STREQUAL "test")
    target_link_libraries(${target} PRIVATE GTest::gtest)
    target_precompile_headers(${target} PRIVATE <gtest/gtest.h>)
  endif()
endfunction()

# What commands and tests compute themselves is small; their compile time is not.
set(HONE_PROGRAM_OPTIONS $<$<CONFIG:Release>:-O1>)

# `hot`: loops over numbers, which sanitizers make slow enough; optimised a little in those builds.
function(hone_use_headers target kind hot)
  if(hot AND HONE_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  elseif(hot)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O3>)
  elseif(HONE_TOGETHER)
    target_precompile_headers(${target} REUSE_FROM hone_headers_${kind})
  endif()
endfunction()

# With HONE_TOGETHER the sources of a target are compiled eight at a time: the headers that they share cost more than they do.
# Their anonymous namespaces are then one, so a name in one stands for one thing in all sources of a folder. ALONE: sources
# that all define the same few names, as every model family has its build().
function(hone_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HONE_TOGETHER} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# hone_library(NAME [HOT] SOURCES a.cc b.cc [ALONE c.cc] DEPENDS hone_base fmt::fmt): a static library `hone_NAME` of folder src/NAME.
function(hone_library name)
  cmake_parse_arguments(ARG "HOT" "" "SOURCES;ALONE;DEPENDS" ${ARGN})
  add_library(hone_${name} STATIC ${ARG_SOURCES} ${ARG_ALONE})
  hone_together(hone_${name})
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(hone_${name} PUBLIC hone_flags ${ARG_DEPENDS})
  hone_use_headers(hone_${name} static "${ARG_HOT}")
endfunction()

# hone_test(NAME [HOT] [APART] SOURCES x_test.cc DEPENDS hone_x [LABELS fast|model|long] [ARGS ...]): a GoogleTest program, one ctest entry.
# APART: the sources all define the same few names, so they are never joined.
# SHARDS N: the program's cases as N ctest entries, which run side by side. SANITIZED_FILTER: the cases (a --gtest_filter) that
# run under sanitizers, of a program whose cases differ in numbers but walk the same code.
# A case that skips itself says why; scripts/test counts them. (No SKIP_REGULAR_EXPRESSION: ctest lets it win over a failure
# of another case of the same program.)
# Label `fast` runs under the sanitizer presets too; `model` needs the small real model; `long` runs only with --long.
# The tests labelled `threads`, for the tsan preset (scripts/sanitize).
add_custom_target(hone_threads_tests)

function(hone_test name)
  cmake_parse_arguments(ARG "HOT;APART" "SHARDS;SANITIZED_FILTER" "SOURCES;DEPENDS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(NOT ARG_APART)
    hone_together(${name})
  endif()
  target_link_libraries(${name} PRIVATE hone_flags ${ARG_DEPENDS} GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${HONE_PROGRAM_OPTIONS})
  hone_use_headers(${name} test "${ARG_HOT}")
  target_compile_definitions(${name} PRIVATE HONE_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
                             HONE_TEST_SANITIZED=${HONE_SANITIZED})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(threads IN_LIST ARG_LABELS)
    add_dependencies(hone_threads_tests ${name})
  endif()
  if(HONE_SANITIZE AND ARG_SANITIZED_FILTER)
    list(APPEND ARG_ARGS --gtest_filter=${ARG_SANITIZED_FILTER})
  endif()
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name}_${shard} PROPERTIES LABELS "${ARG_LABELS}"
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# hone_fuzz(NAME SOURCES x_fuzz.cc DEPENDS hone_x): a libFuzzer target, built only with HONE_FUZZ.
function(hone_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  if(HONE_FUZZ)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE hone_flags ${ARG_DEPENDS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endif()
endfunction()
