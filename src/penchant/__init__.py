"""Learn what people prefer from comparisons."""
