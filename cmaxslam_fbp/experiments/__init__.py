"""The paper's studies, each with one command: our figures beside the paper's."""
