set $a=cvar(type=cvar-erlang,parameters=shape:3;rate:900)
set $b=cvar(type=cvar-exponential,parameters=mean:1000)
set $c=cvar(type=cvar-gamma,parameters=mean:4096;gamma:1.5)
set $d=cvar(type=cvar-lognormal,parameters=shape:0.75;scale:6)
set $e=cvar(type=cvar-normal,parameters=mean:5000;sigma:800)
set $f=cvar(type=cvar-triangular,parameters="lower:100;upper:1000;mode:300")
set $g=cvar(type=cvar-uniform,parameters=lower:4096;upper:8192)
set $h=cvar(type=cvar-weibull,parameters=shape:1.7;scale:2000)
define fileset name=s,size=$a,entries=10,dirwidth=4,prealloc
define process name=p
{
  thread name=t
  {
    flowop openfile name=o,filesetname=s,fd=1
    flowop appendfile name=b,fd=1,iosize=$b
    flowop appendfile name=c,fd=1,iosize=$c
    flowop appendfile name=d,fd=1,iosize=$d
    flowop appendfile name=e,fd=1,iosize=$e
    flowop appendfile name=f,fd=1,iosize=$f
    flowop appendfile name=g,fd=1,iosize=$g
    flowop appendfile name=h,fd=1,iosize=$h
    flowop closefile name=x,fd=1
  }
}
set mode quit firstdone
run
