"""Concept pages: the course list, the pages, the glossary, the bibliography."""
