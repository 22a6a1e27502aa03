# SPDX-License-Identifier: Apache-2.0
# cmake -DFILE=descriptors.pb -DOUTPUT=descriptors.h -P Digest.cmake: a header that is another one when the file is. What includes it beside
# an .incbin of that file is compiled anew then, also where ccache, which does not see an .incbin, has what was compiled before.
cmake_minimum_required(VERSION 3.25)
file(SHA256 "${FILE}" _hash)
file(WRITE "${OUTPUT}" "// ${_hash}\n")
