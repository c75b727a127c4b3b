"""Pictures of the pages, drawn from what the compiler says: `python -m website.pictures` writes them anew."""
