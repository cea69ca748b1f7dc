namespace Aerie.Native
{
    /// <summary>
    /// Where the shared libraries are: wherever the runtime looks for "aerie" (on Linux libaerie.so, by LD_LIBRARY_PATH
    /// or beside the program).
    /// </summary>
    internal static partial class Library
    {
        internal const string Core = "aerie";
        internal const string Text = "aerie-text";
    }
}
