"""AEDAT files: of jAER (2), cAER (3) and DV (4)."""
