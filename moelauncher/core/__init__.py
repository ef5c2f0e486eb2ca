"""What things mean: files, placements, memory, messages. No Qt, no llama.cpp, no drivers."""
