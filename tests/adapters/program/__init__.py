"""What programs may rely on."""
