# How Tenon's targets are made: language level, warnings, compiler cache, linker, and one function a kind of target.

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET default)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

# Assertions stay on in every build: a bug ends the program instead of giving a wrong result. -g1 gives stack traces
# with lines at a fraction of the size of -g.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g -D_GLIBCXX_ASSERTIONS")

# Set by the presets asan, tsan and fuzz.
set(TENON_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize takes them")
set(TENON_SANITIZED false)  # what C++ is told
if(TENON_SANITIZE)
  set(TENON_SANITIZED true)
  # Most of the cost is compilation; tenon_busy_folder() optimizes the code in which tests spend their time.
  set(CMAKE_CXX_FLAGS_RELEASE "-O0 -g1 -D_GLIBCXX_ASSERTIONS")
  # The check of function types (function) reads the bytes before a function, which for generated code may be unmapped.
  # Errors that the address sanitizer reports anyway (null, object-size, pointer-overflow) and downcasts, which this code
  # does not use (vptr), are not checked: these checks are a quarter of the compile time.
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-sanitize=null,object-size,pointer-overflow,vptr,function
                      -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # Clang warns about GCC's own headers and about designated initializers with defaults, GCC does not.
  add_compile_options(-Wno-unknown-warning-option -Wno-deprecated-declarations
                      $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-missing-designated-field-initializers>)
  add_link_options(-fsanitize=${TENON_SANITIZE})
  # The options of all tests, which ctest sets: an allocation that fails is a reported error, as in every other build. Copies
  # of the stack on the heap, which detect uses after a return, would take a sixth of the time, and eight frames of each
  # allocation instead of two as much. Where a report needs more, set ASAN_OPTIONS=malloc_context_size=30 and run the test
  # again.
  # The sanitizer asks each new thread for its attributes; where the process ends meanwhile, the copy that glibc has made
  # for it counts as a leak.
  file(WRITE "${CMAKE_BINARY_DIR}/lsan.supp" "leak:pthread_attr_extension\nleak:pthread_attr_setaffinity_np\n")
  file(WRITE "${CMAKE_BINARY_DIR}/CTestCustom.cmake" [[
if(NOT DEFINED ENV{LSAN_OPTIONS})
  set(ENV{LSAN_OPTIONS} suppressions=${CMAKE_CURRENT_LIST_DIR}/lsan.supp:print_suppressions=0)
endif()
if(NOT DEFINED ENV{ASAN_OPTIONS})
  set(ENV{ASAN_OPTIONS} allocator_may_return_null=1:detect_stack_use_after_return=0:malloc_context_size=2)
endif()
if(NOT DEFINED ENV{TSAN_OPTIONS})
  set(ENV{TSAN_OPTIONS} allocator_may_return_null=1)
endif()
]])
endif()

# The programs of long tests take a twentieth of a build's time.
option(TENON_FULL_TIER "Build the tests of the full tier, too: those labelled full, and sanitized those labelled heavy" OFF)

# Coverage for libFuzzer in every file; set by the preset fuzz.
option(TENON_FUZZ "Build the libFuzzer programs of tests/fuzz; needs Clang" OFF)
if(TENON_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# One cache for all clones of the repository.
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  ${TENON_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
# Assertions name files below the source folder, and so do debuggers: a path of this clone in either would be another
# program, which the cache has not, and would tell where it was built.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=>)
# LLVM's linker takes a fraction of the time of GNU ld. Not mold: where the code ends a page, mold 1.10 begins the segment
# that becomes read-only (GNU_RELRO) in that page, which is not mapped, and the program does not start.
find_program(TENON_LLD ld.lld HINTS /usr/lib/llvm-19/bin)
if(TENON_LLD AND NOT CMAKE_CROSSCOMPILING)
  cmake_path(GET TENON_LLD PARENT_PATH lld_folder)
  add_link_options(-B${lld_folder} -fuse-ld=lld)
endif()

# A build from scratch spends most of its time in headers, so several sources of a target are compiled as one. Names in
# anonymous namespaces are therefore unique within a library or a test program. The preset dev compiles each file alone:
# there one changed file is one file to compile.
option(TENON_UNITY "Compile several sources of a target as one" ON)
set(CMAKE_UNITY_BUILD ${TENON_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 24)
if(TENON_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC treats the included sources as headers, in which a type from an anonymous namespace would be a mistake.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

add_library(tenon_options INTERFACE)
target_compile_options(tenon_options INTERFACE
  $<BUILD_INTERFACE:-Wall -Wextra -Wpedantic -Werror=return-type -Werror=switch>)
target_compile_features(tenon_options INTERFACE cxx_std_23)
target_include_directories(tenon_options INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tenon>)
install(TARGETS tenon_options EXPORT TenonTargets)

# Optimizes the code in which tests spend their time in sanitized builds, too: the targets that follow in this folder, and
# the folders below.
macro(tenon_busy_folder)
  if(TENON_SANITIZE)
    add_compile_options(-O1)
  endif()
endmacro()

# Code that is never hot (commands, files, reports, random programs, tests), and passes beside which LLVM takes the time
# of a compilation, compile in three quarters of the time at -O1, and are small at -Os where the runtime alone is built:
# the targets that follow in this folder, and the folders below.
macro(tenon_cold_folder)
  add_compile_options(${TENON_COLD_OPTIONS})
endmacro()
set(TENON_COLD_OPTIONS "")
if(TENON_RUNTIME_ONLY)
  set(TENON_COLD_OPTIONS $<$<CONFIG:Release>:-Os>)
elseif(NOT TENON_SANITIZE)
  set(TENON_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)
endif()

# The runtime alone is for boards, where its size counts: functions that nothing calls are left out, equal ones are one,
# and relocations are a bitmap (DT_RELR, which glibc knows from 2.36 on).
if(TENON_RUNTIME_ONLY)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections)
  if(TENON_LLD AND NOT CMAKE_CROSSCOMPILING)
    add_link_options(-Wl,--icf=all -Wl,-z,pack-relative-relocs)
  endif()
endif()

# Code that a board runs seldom is small at -Os where the runtime alone is built: the targets that follow in this folder,
# and the folders below.
macro(tenon_small_folder)
  if(TENON_RUNTIME_ONLY)
    add_compile_options($<$<CONFIG:Release>:-Os>)
  endif()
endmacro()

# tenon_library(NAME SOURCES a.cpp ... [DEPS public...] [PRIVATE private...]): a static library of one folder.
function(tenon_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC tenon_options ${arg_DEPS} PRIVATE ${arg_PRIVATE})
  set_property(GLOBAL APPEND PROPERTY TENON_PRODUCT ${name})
  install(TARGETS ${name} EXPORT TenonTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

# tenon_test(NAME SOURCES a_test.cpp ... [DEPS ...] [LABELS ...] [HEAVY pattern ...] [TIMEOUT seconds] [COST n]): one
# GoogleTest program of one folder of tests/. ctest sees each of its cases; in sanitized builds, where a process takes longer
# to start than most cases take, it sees the program. Labels: `full` takes long and runs in the full tier only, `rtl` needs
# Verilator, `once` does not depend on the build; sanitized builds leave the three out. `heavy` takes long under sanitizers
# and executes few lines that no other sanitized test does: it is sanitized in the full tier only, as are the cases that a
# pattern of HEAVY names. Tests of a high COST begin first, or a long one would end alone.
function(tenon_test name)
  cmake_parse_arguments(arg "" "TIMEOUT;COST" "SOURCES;DEPS;LABELS;HEAVY" ${ARGN})
  tenon_test_helper(${name} SOURCES ${arg_SOURCES} DEPS ${arg_DEPS} GTest::gtest_main LABELS ${arg_LABELS})
  target_compile_definitions(${name} PRIVATE TENON_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TENON_BINARY_DIR="${CMAKE_BINARY_DIR}"
                                             TENON_SANITIZED=${TENON_SANITIZED})
  tenon_select(labels left_out ${arg_LABELS})
  if(left_out)
    return()
  endif()
  if(TENON_SANITIZE)
    set(arg_TIMEOUT 3600)
  elseif(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT})
  if(arg_COST)
    list(APPEND properties COST ${arg_COST})
  endif()
  # gtest_discover_tests takes one label: a list loses all but its first, and an empty value would swallow the next
  # property's name. Labels are matched by part of their name.
  if(labels)
    list(JOIN labels "-" label)
    list(APPEND properties LABELS ${label})
  endif()
  if(TENON_SANITIZE)
    list(JOIN arg_HEAVY ":" heavy)
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=-${heavy})
    set_tests_properties(${name} PROPERTIES ${properties})
    if(heavy AND TENON_FULL_TIER)
      add_test(NAME ${name}.heavy COMMAND ${name} --gtest_filter=${heavy})
      set_tests_properties(${name}.heavy PROPERTIES ${properties} LABELS full)
    endif()
  else()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES ${properties})
  endif()
endfunction()

# tenon_test_helper(NAME SOURCES a.cpp ... [DEPS ...] [LABELS ...]): a program that tests with these labels run.
function(tenon_test_helper name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tenon_options ${arg_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  tenon_select(labels left_out ${arg_LABELS})
  set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ${left_out})
endfunction()

# tenon_command_test(NAME COMMAND ... [LABELS ...] [TIMEOUT seconds] [COST n] [ENVIRONMENT NAME=value ...] [SKIP code]
# [ONCE] [SERIAL]): a test that is a command, run in the source folder. It skips itself by the exit code of SKIP; ONCE is the
# label `once`; with SERIAL no other test runs beside it.
function(tenon_command_test name)
  cmake_parse_arguments(arg "ONCE;SERIAL" "TIMEOUT;COST;SKIP" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(arg_ONCE)
    list(PREPEND arg_LABELS once)
  endif()
  tenon_select(labels left_out ${arg_LABELS})
  if(left_out)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${arg_SERIAL})
  if(arg_COST)
    set_tests_properties(${name} PROPERTIES COST ${arg_COST})
  endif()
  if(arg_ENVIRONMENT)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${arg_ENVIRONMENT}")
  endif()
  if(arg_SKIP)
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE ${arg_SKIP})
  endif()
endfunction()

# The same for a test of the repository's own rules, scripts and commands: one build's run of it is enough.
macro(tenon_script_test)
  tenon_command_test(${ARGV} ONCE)
endmacro()

# tenon_select(LABELS LEFT_OUT LABEL...): the labels that tests have in this build, and whether it leaves them out.
function(tenon_select labels left_out)
  set(names ${ARGN})
  set(out FALSE)
  if(TENON_SANITIZE)
    if(names MATCHES "full|rtl|once")
      set(out TRUE)
    endif()
    list(TRANSFORM names REPLACE "^heavy$" full)
  endif()
  if("full" IN_LIST names AND NOT TENON_FULL_TIER)
    set(out TRUE)
  endif()
  set(${labels} ${names} PARENT_SCOPE)
  set(${left_out} ${out} PARENT_SCOPE)
endfunction()
