"""The primitives by family. An op is one block: definition, gradient rules, kernel, examples.

Importing this package defines all of them; `op.OPS` lists them. Composite functions are in `functions/` and
`nn/functional`.
"""
