"""R4: a job call."""

from . import Reading

readings = [
    Reading(
        "R4.1",
        "r4_style",
        "job.function.Job.__call__",
        "In which style does a call wait for its result?",
        "sync",
        'if self.signature.style == "sync":',
        "Look for `step.get()`: under which condition is it called?",
        "The only difference between the styles is who waits. The step is the same.",
    ),
    Reading(
        "R4.2",
        "r4_copied",
        "job.function.Job.submit",
        "Which method makes it safe to write into an argument after the call?",
        "copy_argument",
        "self.signature.copy_argument(leaf, value, devices)",
        "Look at the line that begins with `by_device =`.",
        "The copy is made on the caller's thread, before the call returns.",
    ),
    Reading(
        "R4.3",
        "r4_depth",
        "job.queue.stream",
        "How many steps may be in flight?",
        2,
        "DEPTH = 2",
        "The last line that the cell above shows.",
        "One runs and one waits: that is enough to keep the worker busy while you load the next batch.",
    ),
    Reading(
        "R4.4",
        "r4_head",
        "job.queue.stream.Stream.loop",
        "By which method does the head leave the queue?",
        "popleft",
        "self.queue.popleft()",
        "Look below `finally`.",
        "Below `finally`, since a step that failed leaves the queue, too.",
    ),
    Reading(
        "R4.5",
        "r4_lock",
        "job.compiled.CompiledJob.run",
        "Which lock is held while a plan runs?",
        "plan_lock",
        "with current_context().plan_lock:",
        "The last name after `with`.",
        "Graphs, jobs and builds of one rank share it. No lock is held while a callback runs.",
    ),
]
