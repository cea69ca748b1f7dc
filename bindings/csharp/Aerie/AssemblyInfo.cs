using System.Runtime.CompilerServices;

[assembly: InternalsVisibleTo("Aerie.Tests")] // raw calls, struct layouts
