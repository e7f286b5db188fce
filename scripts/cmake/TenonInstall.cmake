# The installed files besides the targets: headers under their paths in the source tree, so that an include reads
# the same here and there, and the files of find_package(Tenon).
include(CMakePackageConfigHelpers)

foreach(folder support hw sim driver runtime compiler)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon FILES_MATCHING PATTERN "*.h" PATTERN "c_api" EXCLUDE)
endforeach()

install(FILES "${CMAKE_BINARY_DIR}/compiler/ir/operator_id.h" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon/compiler/ir)

set(tenon_package ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
install(EXPORT TenonTargets NAMESPACE Tenon:: DESTINATION ${tenon_package})
configure_package_config_file(scripts/cmake/TenonConfig.cmake.in "${CMAKE_BINARY_DIR}/TenonConfig.cmake"
                              INSTALL_DESTINATION ${tenon_package})
write_basic_package_version_file("${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/TenonConfig.cmake" "${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake"
        DESTINATION ${tenon_package})
