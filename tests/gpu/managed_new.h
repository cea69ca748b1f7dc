#pragma once

namespace aerie::gpu_tests {

// From now on operator new gives memory that host and device both can use; false: there is none. With
// AERIE_GPU_TESTS_APART set, for compute-sanitizer, what has 64 bytes or more is an allocation of its own: accesses beyond
// its end are seen.
bool use_managed_memory();

}  // namespace aerie::gpu_tests
