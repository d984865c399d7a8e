"""The variants, a file per lesson."""
