using System;
using Aerie.Native;

namespace Aerie
{
    /// <summary>
    /// A table of what passes cost here, made by "aerie profile": with it, the auto tree need not measure first. It says
    /// nothing about what text comes out. One thread at a time.
    /// </summary>
    public sealed unsafe class Profile : IDisposable
    {
        private readonly ProfileHandle handle;

        /// <summary>From a file of "aerie profile".</summary>
        public Profile(string path)
        {
            if (path == null) throw new ArgumentNullException("path");
            IntPtr p = IntPtr.Zero;
            aerie_error e = AerieException.NewError();
            fixed (byte* file = Utf8.ToNative(path, "path")) AerieException.Check(Methods.aerie_profile_load(file, &p, &e), ref e);
            handle = new ProfileHandle(p);
        }

        /// <summary>
        /// Sessions that are created on this model, and with these drafters, from now on use the costs. Mismatch: they were
        /// measured with another model, device, thread count or version, or know no such drafter.
        /// </summary>
        public void Attach(Model model, params Drafter[] drafters)
        {
            aerie_error e = AerieException.NewError();
            using (var profile = handle.Use())
            {
                using (var m = model.Handle.Use()) AerieException.Check(Methods.aerie_profile_attach(profile.Pointer, m.Pointer, &e), ref e);
                foreach (Drafter drafter in drafters)
                    using (var d = drafter.Handle.Use())
                        AerieException.Check(Methods.aerie_profile_attach_drafter(profile.Pointer, d.Pointer, &e), ref e);
            }
        }

        /// <summary>What it is attached to keeps the costs.</summary>
        public void Dispose()
        {
            handle.Dispose();
        }
    }
}
