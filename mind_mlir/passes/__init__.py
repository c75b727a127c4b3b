"""IR to IR: verification, canonicalisation, differentiation."""
