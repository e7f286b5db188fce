# Verilated models of the RTL, made at build time.

find_program(TENON_VERILATOR verilator REQUIRED)
execute_process(COMMAND ${TENON_VERILATOR} --getenv VERILATOR_ROOT OUTPUT_VARIABLE TENON_VERILATOR_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE)

# Verilator's run time, once for all models.
if(NOT TARGET verilated_runtime)
  add_library(verilated_runtime STATIC EXCLUDE_FROM_ALL ${TENON_VERILATOR_ROOT}/include/verilated.cpp
                                                        ${TENON_VERILATOR_ROOT}/include/verilated_threads.cpp)
  target_include_directories(verilated_runtime SYSTEM PUBLIC ${TENON_VERILATOR_ROOT}/include
                                                             ${TENON_VERILATOR_ROOT}/include/vltstd)
  target_compile_options(verilated_runtime PRIVATE -w)
  find_package(Threads REQUIRED)
  target_link_libraries(verilated_runtime PUBLIC Threads::Threads)
endif()

# tenon_verilate(NAME CONFIG config TOP module [SERIAL | SDRAM] [SOURCES a.sv ...] [ARGS verilator arguments]): generates the RTL
# of a configuration (a name or a path) and makes NAME, an interface library with the Verilated module: include
# "V<module>.h" and link it. SERIAL and SDRAM add the sources of hw/serial. SOURCES are modules of tests, after those of the
# accelerator. Lint warnings are errors.
function(tenon_verilate name)
  cmake_parse_arguments(arg "SERIAL;SDRAM" "CONFIG;TOP" "ARGS;SOURCES" ${ARGN})
  set(rtl "${CMAKE_CURRENT_BINARY_DIR}/${name}.rtl")
  set(model "${CMAKE_CURRENT_BINARY_DIR}/${name}.model")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/hw/rtl/*.sv" "${CMAKE_SOURCE_DIR}/hw/rtl/files.f")
  set(serial "")
  if(arg_SERIAL OR arg_SDRAM)
    set(serial serial)
    if(arg_SDRAM)
      set(serial sdram)
    endif()
    file(GLOB bridge CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/hw/serial/*.sv")
    list(APPEND sources ${bridge})
  endif()
  set(json "${CMAKE_SOURCE_DIR}/hw/configs/${arg_CONFIG}.json")
  if(IS_ABSOLUTE "${arg_CONFIG}")
    set(json "${arg_CONFIG}")
  endif()
  # The Makefile of Verilator does the work of ninja's compiler rules, so it gets the cache and the flags by hand.
  set(cache "")
  if(TENON_CCACHE)
    set(cache "OBJCACHE=${TENON_CCACHE}" "CCACHE_BASEDIR=${CMAKE_BINARY_DIR}" "CCACHE_NOHASHDIR=1")
  endif()
  set(flags "-fPIC -fno-tree-vectorize")  # GCC 12 makes Verilator's code a fifth slower where it vectorizes it
  if(TENON_SANITIZE)
    set(flags "${flags} -fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all")
  endif()
  add_custom_command(
    OUTPUT "${model}/V${arg_TOP}__ALL.a"
    COMMAND generate_rtl ${json} ${rtl} ${serial}
    COMMAND ${CMAKE_COMMAND} -E chdir ${rtl} ${CMAKE_COMMAND} -E env ${cache} ${TENON_VERILATOR} --cc --build -j 2 -Wall
            --assert -O3 --x-assign fast --x-initial fast --top-module ${arg_TOP} --Mdir ${model} -CFLAGS ${flags}
            -MAKEFLAGS OPT_FAST=-O2 -MAKEFLAGS OPT_SLOW=-O0 -MAKEFLAGS OPT_GLOBAL=-O2 ${arg_ARGS} -F files.f ${arg_SOURCES}
    DEPENDS generate_rtl ${sources} ${arg_SOURCES} ${json}
    COMMENT "Verilating ${arg_TOP} of ${arg_CONFIG}"
    VERBATIM)
  add_custom_target(${name}_model DEPENDS "${model}/V${arg_TOP}__ALL.a")
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_model)
  target_include_directories(${name} SYSTEM INTERFACE ${model})
  target_link_libraries(${name} INTERFACE "${model}/V${arg_TOP}__ALL.a" verilated_runtime)
endfunction()
