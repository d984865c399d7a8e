"""The primitives by family. One op is one block: definition, gradient rules, kernel, examples.

Importing this package defines them all; `op.OPS` lists them. Composite functions live in `functions/` and
`nn/functional`.
"""
