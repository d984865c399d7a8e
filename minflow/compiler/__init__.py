"""From graph to results: passes, plan and executor. What stands here so far is the reference executor."""
