using System;
using System.Runtime.InteropServices;
using System.Threading;
using Aerie.Native;

namespace Aerie
{
    /// <summary>
    /// A C object. Calls that use it hold it (Use), so that Dispose on another thread frees it only after the last of
    /// them. It holds the callbacks of what it stands on.
    /// </summary>
    internal abstract class NativeHandle : SafeHandle
    {
        private readonly Hooks hooks;

        protected NativeHandle(IntPtr pointer, Hooks hooks) : base(IntPtr.Zero, true)
        {
            this.hooks = hooks;
            SetHandle(pointer);
        }

        internal Hooks Hooks { get { return hooks; } }

        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }

        protected abstract void Free(IntPtr pointer);

        protected override bool ReleaseHandle()
        {
            Free(handle);
            if (hooks != null) hooks.Drop();
            return true;
        }

        /// <summary>The pointer for one call: using (var model = handle.Use()) ... model.Pointer.</summary>
        internal Using Use()
        {
            return new Using(this);
        }

        internal struct Using : IDisposable
        {
            private readonly NativeHandle handle;

            internal Using(NativeHandle handle)
            {
                bool held = false;
                handle.DangerousAddRef(ref held); // ObjectDisposedException after Dispose
                this.handle = handle;
            }

            internal IntPtr Pointer { get { return handle == null ? IntPtr.Zero : handle.handle; } }

            public void Dispose()
            {
                if (handle != null) handle.DangerousRelease();
            }
        }
    }

    /// <summary>
    /// What the library calls back into on behalf of several objects. The last of them to go takes it along: before that
    /// the garbage collector must not have it.
    /// </summary>
    internal sealed class Hooks
    {
        private readonly GCHandle root;
        private readonly Hooks below;
        private int users = 1;

        internal Hooks(object target, Hooks below)
        {
            if (target != null) root = GCHandle.Alloc(target);
            this.below = below == null ? null : below.Keep();
        }

        internal IntPtr User { get { return root.IsAllocated ? GCHandle.ToIntPtr(root) : IntPtr.Zero; } }

        /// <summary>By who uses an object that holds it (Use): after the last one's Drop it is gone for good.</summary>
        internal Hooks Keep()
        {
            Interlocked.Increment(ref users);
            return this;
        }

        internal void Drop()
        {
            if (Interlocked.Decrement(ref users) != 0) return;
            if (root.IsAllocated) root.Free();
            if (below != null) below.Drop();
        }
    }

    internal sealed class RuntimeHandle : NativeHandle
    {
        internal RuntimeHandle(IntPtr p, Hooks hooks) : base(p, hooks) { }
        protected override void Free(IntPtr p) { Methods.aerie_runtime_release(p); }
    }

    internal sealed class ModelHandle : NativeHandle
    {
        internal ModelHandle(IntPtr p, Hooks hooks) : base(p, hooks) { }
        protected override void Free(IntPtr p) { Methods.aerie_model_release(p); }
    }

    internal sealed class DrafterHandle : NativeHandle
    {
        internal DrafterHandle(IntPtr p, Hooks hooks) : base(p, hooks) { }
        protected override void Free(IntPtr p) { Methods.aerie_drafter_release(p); }
    }

    internal sealed class SessionHandle : NativeHandle
    {
        internal SessionHandle(IntPtr p, Hooks hooks) : base(p, hooks) { }
        protected override void Free(IntPtr p) { Methods.aerie_session_release(p); }
    }

    internal sealed class BatchHandle : NativeHandle
    {
        internal BatchHandle(IntPtr p, Hooks hooks) : base(p, hooks) { }
        protected override void Free(IntPtr p) { Methods.aerie_batch_release(p); }
    }

    internal sealed class ProfileHandle : NativeHandle
    {
        internal ProfileHandle(IntPtr p) : base(p, null) { }
        protected override void Free(IntPtr p) { Methods.aerie_profile_release(p); }
    }

    internal sealed class TokenizerHandle : NativeHandle
    {
        internal TokenizerHandle(IntPtr p) : base(p, null) { }
        protected override void Free(IntPtr p) { Methods.aerie_tokenizer_release(p); }
    }

    internal sealed class DecoderHandle : NativeHandle
    {
        internal DecoderHandle(IntPtr p) : base(p, null) { }
        protected override void Free(IntPtr p) { Methods.aerie_decoder_release(p); }
    }

    internal sealed class ChatTemplateHandle : NativeHandle
    {
        internal ChatTemplateHandle(IntPtr p) : base(p, null) { }
        protected override void Free(IntPtr p) { Methods.aerie_chat_template_release(p); }
    }

    internal sealed class GrammarHandle : NativeHandle
    {
        internal GrammarHandle(IntPtr p) : base(p, null) { }
        protected override void Free(IntPtr p) { Methods.aerie_grammar_release(p); }
    }
}
