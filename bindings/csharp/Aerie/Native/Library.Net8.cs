#if NET8_0_OR_GREATER
using System;
using System.Runtime.InteropServices;

namespace Aerie.Native
{
    internal static partial class Library
    {
        /// <summary>The folder of the environment's AERIE_DIR, a prefix or a build tree, comes first.</summary>
        [System.Runtime.CompilerServices.ModuleInitializer]
        internal static void Resolve()
        {
            NativeLibrary.SetDllImportResolver(typeof(Library).Assembly, (name, assembly, path) =>
            {
                string directory = Environment.GetEnvironmentVariable("AERIE_DIR");
                if (string.IsNullOrEmpty(directory)) return IntPtr.Zero; // the runtime's own way
                string file = OperatingSystem.IsWindows() ? name + ".dll" : OperatingSystem.IsMacOS() ? "lib" + name + ".dylib" : "lib" + name + ".so";
                foreach (string folder in new[] { "lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "bin" })
                    if (NativeLibrary.TryLoad(System.IO.Path.Combine(directory, folder, file), out IntPtr library)) return library;
                return IntPtr.Zero;
            });
        }
    }
}
#endif
