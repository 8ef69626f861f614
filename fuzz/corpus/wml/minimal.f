define file name=f,size=${size},prealloc
set $size=1m
define process name=p{thread name=t{flowop read name=r,filename=f,iosize=4k}}
