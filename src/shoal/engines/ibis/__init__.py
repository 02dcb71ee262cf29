"""The base of engines that use Ibis, and the engine for all other Ibis backends."""
