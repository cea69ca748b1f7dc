// windows.h without the names it takes from us: `far` is a word of Device.
#pragma once

#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#undef far
#undef near

namespace aerie::kernels {

// The library that holds this code is never unloaded: threads run in it, or end in it.
inline void stay_loaded(const void* code) {
  HMODULE library;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, static_cast<const wchar_t*>(code), &library);
}

}  // namespace aerie::kernels
