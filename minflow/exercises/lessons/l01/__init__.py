"""Lesson 01: numbers with a shape."""
