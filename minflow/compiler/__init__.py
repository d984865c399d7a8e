"""From a trace to results: passes, a plan that places all values in one arena, and the executor that runs it."""
