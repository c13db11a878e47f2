"""Files of Prophesee's cameras: RAW and DAT."""
