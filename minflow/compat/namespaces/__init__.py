"""Names for other machines that programs say too: accepted, answered for one process and one CPU, or refused.

Each file is a namespace, found at the address that its programs import: `minflow.backends`, `minflow.distributed`.
`../../addresses.py` has the table. Read next: `backends.py`.
"""
