"""Lesson 07: eager and static."""
