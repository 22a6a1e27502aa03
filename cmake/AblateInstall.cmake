# SPDX-License-Identifier: Apache-2.0
# What `make install` puts beside the programs. Components: programs, libraries (LibTorch's), documentation, development.
# Nothing here needs the network or a PATH: what is written at installation comes from the programs that were built.

# Documentation: README and docs/ (messages name these pages), licences, and the sweep files.
install(FILES README.md LICENSE NOTICE DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation)
# The licences of others' work that comes along: compiled into the programs and pages, or as libraries beside them.
set(_licences "${CMAKE_INSTALL_DOCDIR}/licences")
foreach(_package IN ITEMS libboost1.81-dev libcli11-dev libfmt-dev libgloo-dev libtcmalloc-minimal4 nlohmann-json3-dev)
  if(EXISTS "/usr/share/doc/${_package}/copyright")
    install(FILES "/usr/share/doc/${_package}/copyright" DESTINATION "${_licences}" RENAME "${_package}" COMPONENT documentation)
  endif()
endforeach()
if(ABLATE_WEB)
  foreach(_module IN ITEMS preact uplot)
    install(FILES "web/app/node_modules/${_module}/LICENSE" DESTINATION "${_licences}" RENAME "${_module}" COMPONENT documentation)
  endforeach()
endif()
if(TARGET ablate-trainer)
  file(GLOB _torch_licences LIST_DIRECTORIES true "${LibTorch_ROOT_DIR}/../torch-*.dist-info/licenses")
  if(_torch_licences)
    install(DIRECTORY ${_torch_licences}/ DESTINATION "${_licences}/pytorch" COMPONENT documentation)
  endif()
endif()
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documentation)
install(DIRECTORY sweeps/ DESTINATION "${CMAKE_INSTALL_DATADIR}/ablate/sweeps" COMPONENT documentation
        FILES_MATCHING PATTERN "*.yaml")
# at the same place from sweeps/examples/command.yaml as in the tree: it names the folder
install(FILES docs/examples/command_trial.py DESTINATION "${CMAKE_INSTALL_DATADIR}/ablate/docs/examples" COMPONENT documentation)
# the package for scripts and notebooks: pip install PREFIX/share/ablate/python
install(DIRECTORY python/ DESTINATION "${CMAKE_INSTALL_DATADIR}/ablate/python" COMPONENT documentation
        FILES_MATCHING PATTERN "*.py" PATTERN "pyproject.toml" PATTERN "__pycache__" EXCLUDE)

# abl_install_output(FILE PROGRAM ARGUMENTS…): what a built program prints, as a file of the tree. HOME=~ stands in its defaults.
function(abl_install_output file program)
  list(JOIN ARGN "\" \"" _arguments)
  install(CODE "
    set(_file \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${file}\")
    message(STATUS \"Installing: \${_file}\")
    execute_process(COMMAND \"${CMAKE_COMMAND}\" -E env --unset=ABLATE_HOME --unset=XDG_STATE_HOME HOME=~ \"$<TARGET_FILE:${program}>\" \"${_arguments}\" OUTPUT_VARIABLE _text RESULT_VARIABLE _failed)
    if(_failed)
      message(FATAL_ERROR \"${program} ${ARGN}: \${_failed}\")
    endif()
    file(WRITE \"\${_file}\" \"\${_text}\")" COMPONENT documentation)
endfunction()

abl_install_output("${CMAKE_INSTALL_DATADIR}/bash-completion/completions/ablate" ablate completion bash)
abl_install_output("${CMAKE_INSTALL_DATADIR}/zsh/site-functions/_ablate" ablate completion zsh)
abl_install_output("${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d/ablate.fish" ablate completion fish)
abl_install_output("${CMAKE_INSTALL_DATADIR}/ablate/sweep.schema.json" ablate schema)
abl_install_output("${CMAKE_INSTALL_DATADIR}/ablate/scales.schema.json" ablate schema scales)
set(_programs ablate ablate-scheduler ablate-worker)
if(TARGET ablate-trainer)
  list(APPEND _programs ablate-trainer)
endif()
foreach(_program IN LISTS _programs)
  abl_install_output("${CMAKE_INSTALL_MANDIR}/man1/${_program}.1" ${_program} --man)
endforeach()

# Development: the models as a library, for find_package(ablate) and abl::models (docs/models.md).
if(TARGET abl_models)
  set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/ablate")
  foreach(_library IN ITEMS fmt digests base choices safetensors_layout models plugin)
    set_target_properties(abl_${_library} PROPERTIES EXPORT_NAME ${_library})
  endforeach()
  target_compile_features(abl_base PUBLIC cxx_std_20)
  install(TARGETS abl_fmt abl_digests abl_base abl_choices abl_safetensors_layout abl_models abl_plugin EXPORT ablate
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
  install(EXPORT ablate NAMESPACE abl:: FILE ablateTargets.cmake DESTINATION "${_package}" COMPONENT development)
  foreach(_folder IN ITEMS base models)
    install(DIRECTORY ${_folder} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ablate" COMPONENT development
            FILES_MATCHING PATTERN "*.h")
  endforeach()
  install(FILES "${CMAKE_BINARY_DIR}/models/plugins/interface.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ablate/models/plugins"
          COMPONENT development)
  install(FILES data/own_format.h "${CMAKE_BINARY_DIR}/data/format_interface.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ablate/data"
          COMPONENT development)
  install(FILES images/image.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ablate/images" COMPONENT development)
  include(CMakePackageConfigHelpers)
  configure_package_config_file(cmake/ablateConfig.cmake.in "${CMAKE_BINARY_DIR}/ablateConfig.cmake" INSTALL_DESTINATION "${_package}")
  write_basic_package_version_file("${CMAKE_BINARY_DIR}/ablateConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${CMAKE_BINARY_DIR}/ablateConfig.cmake" "${CMAKE_BINARY_DIR}/ablateConfigVersion.cmake" cmake/FindLibTorch.cmake cmake/AblatePlugin.cmake
          DESTINATION "${_package}" COMPONENT development)
endif()
