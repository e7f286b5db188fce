# Tables of a family a file: each source FAMILY.cpp of a folder that defines a function FAMILY_SUFFIX() { ... } adds its
# rows to one generated table, so that a new family or row is an edit of its own file alone.

# tenon_family_table(NAME OUT FOLDER RETURN SUFFIX): generates OUT in the build folder from NAME.in beside the caller's
# CMakeLists.txt, with TENON_DECLARATIONS, the functions' declarations; TENON_CALLS, their calls; and TENON_FAMILIES, a
# pair of a family's name and its function each.
function(tenon_family_table name out folder return suffix)
  set(template "${CMAKE_CURRENT_SOURCE_DIR}/${name}.in")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  tenon_generate("${output}" tables.cmake "${folder}/*.cpp" "${template}" -DRETURN=${return} -DSUFFIX=${suffix})
  set(${out} "${output}" PARENT_SCOPE)
endfunction()

# tenon_generate(OUTPUT SCRIPT PATTERN TEMPLATE OPTION...): runs scripts/cmake/SCRIPT when one of the sources changes that
# match the pattern. The file is written where its text changes, so that edits beside its table compile nothing anew.
function(tenon_generate output script pattern template)
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${pattern}")
  set(script "${CMAKE_SOURCE_DIR}/scripts/cmake/${script}")
  list(JOIN sources "|" joined)
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DSOURCES=${joined}" "-DTEMPLATE=${template}" "-DOUTPUT=${output}" ${ARGN} -P "${script}"
    DEPENDS ${sources} "${script}" "${template}" VERBATIM)
endfunction()
