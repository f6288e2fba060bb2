"""The generated parts of the documentation, each from the code that it describes.

A page holds generated parts between two comments, ``<!-- generated: NAME -->`` and ``<!-- end of generated -->``;
``parts`` says which function makes which name, ``pages`` finds and replaces them, ``__main__`` is the command.
"""
