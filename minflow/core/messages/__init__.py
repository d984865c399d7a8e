"""Messages to users: suggestions for names, errors about arguments, warnings about training, the text of a tensor.

In a correct program nothing of it runs except a check of each loss. Read next: `suggestions.py`,
`training_warnings.py`.
"""
