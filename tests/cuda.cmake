# The CUDA backend's own sources, compiled by the C++ compiler against an emulated GPU.
file(GLOB emulated CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/support/cuda_emulation/*.cc)
set_source_files_properties(${emulated} PROPERTIES LANGUAGE CXX)
add_library(aerie_cuda_emulated STATIC ${emulated} ${PROJECT_SOURCE_DIR}/kernels/cuda/queue.cc
            ${PROJECT_SOURCE_DIR}/kernels/cuda/graphs.cc ${PROJECT_SOURCE_DIR}/kernels/cuda/cuda_device.cc)
target_include_directories(aerie_cuda_emulated PUBLIC ${PROJECT_SOURCE_DIR})
target_compile_options(aerie_cuda_emulated PRIVATE -xc++ -Wno-unknown-pragmas)
if(NOT AERIE_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")  # with sanitizers it takes longer to compile than it saves
  target_compile_options(aerie_cuda_emulated PRIVATE -O2)  # as hot as aerie_kernels
endif()
target_compile_definitions(aerie_cuda_emulated PUBLIC AERIE_CUDA_EMULATION="tests/support/cuda_emulation/kernel.h")
target_link_libraries(aerie_cuda_emulated PUBLIC aerie_kernels)
# The same as a shared object, in the place of libaerie-cuda.
add_library(emulated_backend MODULE ${PROJECT_SOURCE_DIR}/kernels/cuda/backend.cc)
set_target_properties(emulated_backend PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/test-backend)
target_compile_definitions(emulated_backend PRIVATE AERIE_VERSION_TEXT="${PROJECT_VERSION}")
target_link_libraries(emulated_backend PRIVATE aerie_cuda_emulated)
aerie_test(test_cuda unit/cuda aerie_cuda_emulated core_session core_import core_device)
if(TARGET test_cuda)
  add_dependencies(test_cuda emulated_backend drafter_assistant drafter_dflash drafter_eagle drafter_fasteagle drafter_hydra drafter_medusa drafter_mtp drafter_ngram drafter_small_model)
endif()

# For a machine with a GPU (tests/gpu/run.sh): the same tests on the real kernels, and measurements. What measures also
# runs dry, on the emulated device.
set(gpu ${CMAKE_CURRENT_SOURCE_DIR}/gpu)
add_library(gpu_report_parts STATIC ${gpu}/report.cc)
target_include_directories(gpu_report_parts PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(gpu_report_parts PUBLIC nlohmann_json::nlohmann_json)
add_executable(gpu_report ${gpu}/report_main.cc)
target_link_libraries(gpu_report PRIVATE gpu_report_parts)
add_executable(gpu_bench_dry ${gpu}/bench.cc ${gpu}/passes.cc ${gpu}/dry_probe.cc)
target_link_libraries(gpu_bench_dry PRIVATE aerie_cuda_emulated nlohmann_json::nlohmann_json)
aerie_test(test_gpu_report unit/gpu gpu_report_parts)
add_dependencies(test_gpu_report gpu_report gpu_bench_dry)
if(AERIE_BUILD_CUDA)
  set(real ${CMAKE_CURRENT_SOURCE_DIR}/unit/cuda)
  add_executable(gpu_tests ${real}/attention_cap_test.cc ${real}/attention_test.cc ${real}/chain_test.cc
                 ${real}/cycle_graphs_test.cc ${real}/delta_test.cc ${real}/device_test.cc
                 ${real}/draw_test.cc ${real}/experts_layer_test.cc ${real}/experts_test.cc ${real}/families_test.cc
                 ${real}/graphs_test.cc ${real}/heads_test.cc ${real}/linear_test.cc ${real}/rows_test.cc ${real}/session_test.cc ${real}/sinks_test.cc
                 ${real}/tree_test.cc ${real}/window_test.cc ${gpu}/fast_linear_test.cc ${gpu}/main.cc ${gpu}/managed_new.cc)
  target_compile_definitions(gpu_tests PRIVATE AERIE_REAL_GPU ${places})
  target_include_directories(gpu_tests PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(gpu_tests PRIVATE aerie_cuda_objects core_session core_import GTest::gtest)
  add_test(NAME gpu_tests COMMAND gpu_tests)
  set_tests_properties(gpu_tests PROPERTIES SKIP_RETURN_CODE 77)
  add_executable(gpu_bench ${gpu}/bench.cc ${gpu}/passes.cc ${gpu}/probe.cu)
  target_include_directories(gpu_bench PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(gpu_bench PRIVATE aerie_cuda_objects nlohmann_json::nlohmann_json)
  set_target_properties(gpu_tests gpu_bench PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_options(gpu_tests PRIVATE $<$<CONFIG:Release>:-O1>)  # as other tests
endif()
