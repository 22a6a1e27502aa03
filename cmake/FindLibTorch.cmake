# SPDX-License-Identifier: Apache-2.0
# LibTorch as it lies in a PyTorch wheel, CPU or CUDA. The wheel's own CMake config stops without nvcc when it is a
# CUDA build; we compile no CUDA, so headers and libraries are all that is needed.
#
# Looked for in this order: CMAKE_PREFIX_PATH, as a variable or in the environment (the wheel's `torch` folder, or a LibTorch
# archive), the torch of $ABLATE_PYTHON, the environment that the set-up made (.deps/python), the `python3` on the PATH.
#
# Gives: target LibTorch::LibTorch, LibTorch_VERSION, LibTorch_CUDA (ON for a CUDA wheel), LibTorch_LIBRARIES_TO_INSTALL.
file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" _prefixes)
set(LibTorch_ROOTS ${CMAKE_PREFIX_PATH} ${_prefixes})
foreach(_python IN ITEMS "$ENV{ABLATE_PYTHON}" "${PROJECT_SOURCE_DIR}/.deps/python/bin/python" python3)
  if(_python)
    execute_process(COMMAND "${_python}" -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
                    OUTPUT_VARIABLE _root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE _failed)
    if(NOT _failed AND _root)
      list(APPEND LibTorch_ROOTS "${_root}")
    endif()
  endif()
endforeach()

# kept in the cache: a later run of CMake need not see the same environment; remove the build folder to choose anew
find_path(LibTorch_ROOT_DIR include/torch/csrc/api/include/torch/torch.h PATHS ${LibTorch_ROOTS} NO_DEFAULT_PATH)
if(LibTorch_ROOT_DIR AND EXISTS "${LibTorch_ROOT_DIR}/include/torch/headeronly/version.h")
  file(STRINGS "${LibTorch_ROOT_DIR}/include/torch/headeronly/version.h" _lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
elseif(LibTorch_ROOT_DIR)
  file(STRINGS "${LibTorch_ROOT_DIR}/include/torch/csrc/api/include/torch/version.h" _lines
       REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
endif()
string(REGEX REPLACE "[^0-9;]+" "" LibTorch_VERSION "${_lines}")
string(REPLACE ";" "." LibTorch_VERSION "${LibTorch_VERSION}")

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_ROOT_DIR VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "No PyTorch found. Run deploy/setup.sh, or set ABLATE_PYTHON to a Python that has torch >= 2.11.")
if(NOT LibTorch_FOUND OR TARGET LibTorch::LibTorch)
  return()
endif()
if(LibTorch_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "PyTorch ${LibTorch_VERSION} in ${LibTorch_ROOT_DIR} is too old: 2.11 or newer is needed")
endif()

set(_lib "${LibTorch_ROOT_DIR}/lib")
file(GLOB LibTorch_LIBRARIES_TO_INSTALL "${_lib}/libtorch.so" "${_lib}/libtorch_cpu.so" "${_lib}/libc10.so" "${_lib}/libgomp*.so*"
     "${_lib}/libtorch_cuda.so" "${_lib}/libc10_cuda.so")
add_library(LibTorch::LibTorch INTERFACE IMPORTED)
target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE "${LibTorch_ROOT_DIR}/include"
                           "${LibTorch_ROOT_DIR}/include/torch/csrc/api/include")
target_link_directories(LibTorch::LibTorch INTERFACE "${_lib}")
target_link_libraries(LibTorch::LibTorch INTERFACE torch torch_cpu c10)
list(APPEND CMAKE_BUILD_RPATH "${_lib}")  # an installed program finds its own copy instead

if(EXISTS "${_lib}/libtorch_cuda.so")
  # The runtime, its headers and NCCL's come from further wheels (nvidia/cu13, nvidia/nccl) or from a toolkit.
  get_filename_component(_site "${LibTorch_ROOT_DIR}" DIRECTORY)
  find_path(LibTorch_CUDA_INCLUDE cuda_runtime_api.h PATHS "${_site}/nvidia/cu13/include" /usr/local/cuda/include NO_DEFAULT_PATH)
  find_path(LibTorch_NCCL_INCLUDE nccl.h PATHS "${_site}/nvidia/nccl/include" /usr/local/cuda/include /usr/include NO_DEFAULT_PATH)
  find_file(LibTorch_CUDART NAMES libcudart.so.13 libcudart.so PATHS "${_site}/nvidia/cu13/lib" /usr/local/cuda/lib64 NO_DEFAULT_PATH)
endif()
if(LibTorch_CUDA_INCLUDE AND LibTorch_CUDART)
  set(LibTorch_CUDA ON CACHE BOOL "LibTorch is a CUDA build" FORCE)
  # nothing refers to torch_cuda by name: without --no-as-needed the linker would drop it, and CUDA with it
  target_link_libraries(LibTorch::LibTorch INTERFACE -Wl,--no-as-needed torch_cuda c10_cuda -Wl,--as-needed "${LibTorch_CUDART}")
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE "${LibTorch_CUDA_INCLUDE}")
  get_filename_component(_cudart_dir "${LibTorch_CUDART}" DIRECTORY)
  list(APPEND CMAKE_BUILD_RPATH "${_cudart_dir}")
  target_compile_definitions(LibTorch::LibTorch INTERFACE ABLATE_CUDA)
  if(LibTorch_NCCL_INCLUDE)
    target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE "${LibTorch_NCCL_INCLUDE}")
    target_compile_definitions(LibTorch::LibTorch INTERFACE USE_C10D_NCCL)
  endif()
elseif(EXISTS "${_lib}/libtorch_cuda.so")
  message(WARNING "${LibTorch_ROOT_DIR} is a CUDA build, but CUDA's runtime and headers were not found in ${_site}/nvidia/cu13 or /usr/local/cuda: "
                  "the trainer will use the CPU alone")
elseif(LibTorch_CUDA)
  message(FATAL_ERROR "LibTorch_CUDA is asked for, but ${LibTorch_ROOT_DIR} is a CPU build, or CUDA's runtime was not found beside it")
endif()
