"""Variants of lesson 07."""

from ..variants import Change, vary

vary(
    "read_tags",
    "The cell below prints the listing of a graph. How many lines begin with PARAMETER? Which module owns the BUFFER "
    'lines? Which module has no INPUT line? Write a dict: `{answer} = {{"parameters": 7, "buffer": "model.one", '
    '"no input": "model.two"}}`.',
    [Change("answers", "")],
    setup='print("""\n{drawn}\n""")',
)
